#include "passes/fuse/element_groups.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "core/memory/bytes.h"
#include "core/programs/sub_block_slots.h"
#include "core/tile_ops.h"
#include "passes/places.h"

namespace heddle::passes {
namespace {

using ir::VarId;

// The number of inputs and results that a loop may have. The memory of all is in use while the loop
// runs: a group of more than the first-level cache holds is slower than several (the selective scan
// of benchmarks/loops.py, unrolled: by half with one loop of 256 operands of 2 KiB, and with loops
// of 24 faster than without fusion). Where sizes are not known they are taken to be large.
size_t MostOperands(const ir::Var& result) {
  constexpr size_t kAlways = 24, kMostBytes = 48 << 10;
  if (!result.shape.is_static()) return kAlways;
  return std::max(kAlways, kMostBytes / std::max<size_t>(1, BytesFor(result.dtype, result.shape)));
}

bool Empty(const std::vector<VarId>& slot) {
  return std::all_of(slot.begin(), slot.end(), [](VarId v) { return v == ir::kNoVar; });
}

// Of the body of a loop the variables that no iteration changes; else none.
void AddUnchanged(const ir::Program& program, const GraphView& view, std::vector<bool>* known) {
  const ir::Op* loop = nullptr;
  for (const ir::Block& block : program.blocks)
    for (const ir::Op& op : block.ops)
      for (int sub : op.def->has(kControlFlow) ? op.SubBlocks() : std::vector<int>())
        if (sub == view.block()) loop = &op;
  if (view.block() == 0 || loop == nullptr || !ir::RunsAgain(*loop->def)) return;
  for (VarId v = 0; v < program.vars.size(); ++v)
    if (view.writers(v).empty()) (*known)[v] = true;
  const auto changes = [&](const std::vector<std::vector<VarId>>& slots) {
    for (const auto& slot : slots)
      for (VarId v : slot)
        if (v != ir::kNoVar) (*known)[v] = false;
  };
  changes(loop->outputs);
  for (size_t s = 0; s < loop->def->inputs().size(); ++s)  // the kernel puts recorded values there
    if (ir::IsSubBlockSlot(loop->def->inputs()[s])) changes({loop->inputs[s]});
}

// The operators that the plan computes ahead, because their operands never change, or once for all
// iterations. In a loop with others they would be computed again and again.
std::vector<bool> FindKnown(const ir::Program& program, const GraphView& view) {
  constexpr unsigned kNeverKnown = kRandom | kSideEffect | kCommunication | kReader | kControlFlow;
  std::vector<bool> var_known(program.vars.size(), false), op_known;
  for (VarId v = 0; v < program.vars.size(); ++v)
    var_known[v] = program.vars[v].persistable && view.NeverWritten(v);
  AddUnchanged(program, view, &var_known);
  for (const ir::Op& op : program.blocks[static_cast<size_t>(view.block())].ops) {
    bool known = (op.def->traits() & kNeverKnown) == 0 && !op.has_control_edges();
    for (size_t s = 0; s < op.inputs.size(); ++s) {
      if (s < op.def->inputs().size() && (op.def->inputs()[s].flags & kNoBuffer)) continue;
      for (VarId v : op.inputs[s]) known = known && (v == ir::kNoVar || var_known[v]);
    }
    for (const auto& slot : op.outputs)
      for (VarId v : slot)
        if (v != ir::kNoVar) var_known[v] = known && !program.vars[v].persistable;
    op_known.push_back(known);
  }
  return op_known;
}

}  // namespace

ElementGroups::ElementGroups(const ir::Program& program, const GraphView& view,
                             const OrderGraph& order)

    : p_(program),
      block_(program.blocks[static_cast<size_t>(view.block())].ops),
      view_(view),
      order_(order) {
  FindFusable();
  Layer();
  Sink();
  Join();
}

void ElementGroups::FindFusable() {
  const std::vector<bool> known = FindKnown(p_, view_);
  ops_.resize(block_.size());
  for (size_t i = 0; i < ops_.size(); ++i)
    ops_[i].fusable = !known[i] && Fusable(static_cast<int>(i), &ops_[i]);
}

// The result is written once. An operand may be written again: whoever writes it depends on its
// readers, and a reader of the new value on whoever writes it, so that no group reads both values.
bool ElementGroups::Fusable(int at, ElementOp* op) const {
  const ir::Op& from = block_[static_cast<size_t>(at)];
  const bool sum = from.type() == "sum";
  const TileOp* tile = sum ? FindTileOp("elementwise_add") : FindTileOp(from.type());
  if (tile == nullptr || !from.var_attrs.empty() || from.outputs[0].size() != 1) return false;
  op->out = from.outputs[0][0];
  for (size_t s = 1; s < from.outputs.size(); ++s)
    if (!Empty(from.outputs[s])) return false;
  if (op->out == ir::kNoVar || !view_.SingleWriter(op->out, true)) return false;
  const DType dtype = p_.vars[op->out].dtype;
  if (tile->make(dtype) == nullptr || !p_.vars[op->out].shape.known_rank()) return false;
  for (int r : view_.readers(op->out))
    if (r <= at) return false;
  const size_t operands = sum ? 1 : static_cast<size_t>(tile->operands);
  for (size_t s = 0; s < from.inputs.size(); ++s) {
    if (s >= operands) {
      if (!Empty(from.inputs[s]) && !(from.def->inputs()[s].flags & kNoBuffer)) return false;
      continue;
    }
    if (!sum && from.inputs[s].size() != 1) return false;
    op->operands.insert(op->operands.end(), from.inputs[s].begin(), from.inputs[s].end());
  }
  if (op->operands.size() < (sum ? 2u : 1u)) return false;
  for (VarId v : op->operands) {
    if (v == ir::kNoVar || p_.vars[v].kind != ir::VarKind::kTensor || p_.vars[v].dtype != dtype)
      return false;
    if (sum && !(p_.vars[v].shape == p_.vars[op->out].shape)) return false;
  }
  if (sum) return true;
  TileStep step;
  Floats values;
  return MakeTileStep(*from.def, from.attrs, dtype, &step).ok() &&
         PackNumbers(*from.def, from.attrs, &values);
}

bool ElementGroups::Joins(int producer, int reader) const {
  const ElementOp &a = op(producer), &b = op(reader);
  if (!a.fusable || !b.fusable) return false;
  if (!SamePlace(block_[static_cast<size_t>(producer)], block_[static_cast<size_t>(reader)]))
    return false;
  const ir::Var &x = p_.vars[a.out], &y = p_.vars[b.out];
  return x.dtype == y.dtype && x.shape == y.shape;
}

// Assigns layers: no operator depends on a later layer, operators that join may share a layer, and
// all other dependencies of a fusable operator are in earlier layers. Joined operators of one layer
// can therefore be computed together.
void ElementGroups::Layer() {
  layer_.assign(ops_.size(), 0);
  for (int i = 0; i < order_.size(); ++i) {
    int& layer = layer_[static_cast<size_t>(i)];
    for (int b : order_.before(i)) {
      const bool apart = op(i).fusable && !Joins(b, i);
      layer = std::max(layer, layer_[static_cast<size_t>(b)] + (apart ? 1 : 0));
    }
  }
}

// A fusable operator all of whose readers come later moves to the layer of those that it joins.
void ElementGroups::Sink() {
  std::vector<int> latest(ops_.size(), std::numeric_limits<int>::max());
  std::vector<bool> joined(ops_.size(), false);  // joined by a reader in that layer
  for (int i = order_.size() - 1; i >= 0; --i) {
    const auto at = static_cast<size_t>(i);
    if (op(i).fusable && joined[at]) layer_[at] = std::max(layer_[at], latest[at]);
    for (int b : order_.before(i)) {
      const auto from = static_cast<size_t>(b);
      const bool joins = Joins(b, i);
      const int limit = layer_[at] - (op(i).fusable && !joins ? 1 : 0);
      if (limit < latest[from]) joined[from] = false;
      if (limit <= latest[from]) joined[from] = joined[from] || joins;
      latest[from] = std::min(latest[from], limit);
    }
  }
}

void ElementGroups::Join() {
  std::vector<int> root(ops_.size());
  std::iota(root.begin(), root.end(), 0);
  const auto find = [&](int i) {
    while (root[static_cast<size_t>(i)] != i) {
      int& r = root[static_cast<size_t>(i)];
      r = root[static_cast<size_t>(r)];
      i = r;
    }
    return i;
  };
  for (int i = 0; i < order_.size(); ++i)
    for (int b : order_.before(i))
      if (layer_[static_cast<size_t>(b)] == layer_[static_cast<size_t>(i)] && Joins(b, i))
        root[static_cast<size_t>(find(i))] = find(b);
  std::map<int, std::vector<int>> members;  // ordered by root, so that the result is deterministic
  for (int i = 0; i < order_.size(); ++i)
    if (op(i).fusable) members[find(i)].push_back(i);
  for (const auto& [first, group] : members) Cut(group);
}

// The members so that those that compute a value come right before the first that needs it. Of a
// member's operands the one with the longest way behind it is computed first: the others need not
// be kept meanwhile.
std::vector<int> ElementGroups::DepthFirst(const std::vector<int>& group) const {
  struct Maker {
    int at, depth;
  };
  std::unordered_map<VarId, Maker> makers;
  for (const int at : group) {
    int depth = 0;
    for (VarId v : op(at).operands)
      if (const auto from = makers.find(v); from != makers.end())
        depth = std::max(depth, from->second.depth + 1);
    makers.emplace(op(at).out, Maker{at, depth});
  }
  std::unordered_set<int> done;
  std::vector<int> order, open;
  for (const int last : group) {
    const auto& readers = view_.readers(op(last).out);
    if (std::any_of(readers.begin(), readers.end(),
                    [&](int r) { return std::binary_search(group.begin(), group.end(), r); }))
      continue;
    open.push_back(last);
    while (!open.empty()) {
      const int at = open.back();
      std::vector<Maker> operands;
      for (VarId v : op(at).operands)
        if (const auto from = makers.find(v); from != makers.end() && !done.count(from->second.at))
          operands.push_back(from->second);
      std::stable_sort(operands.begin(), operands.end(),
                       [](const Maker& x, const Maker& y) { return x.depth < y.depth; });
      for (const Maker& m : operands) open.push_back(m.at);
      if (!operands.empty()) continue;
      open.pop_back();
      if (done.insert(at).second) order.push_back(at);
    }
  }
  return order;
}

// A group of very many operands becomes pieces of few. What a member reads of its group, members
// before it have computed: no piece waits for a later one.
void ElementGroups::Cut(const std::vector<int>& group) {
  std::vector<int> piece;
  std::unordered_set<VarId> read;            // from outside the piece
  std::unordered_map<VarId, size_t> result;  // of the piece, with the readers outside it so far
  size_t written = 0;                        // results that have such readers
  const auto add = [&](int at) {
    const ElementOp& member = op(at);
    for (VarId v : std::unordered_set<VarId>(member.operands.begin(), member.operands.end())) {
      const auto own = result.find(v);
      if (own == result.end())
        read.insert(v);
      else if (--own->second == 0)
        --written;
    }
    piece.push_back(at);
    result.emplace(member.out, view_.readers(member.out).size());
    ++written;
  };
  const auto end = [&] {
    std::sort(piece.begin(), piece.end());
    if (piece.size() > 1) groups_.push_back(piece);
    piece.clear();
    read.clear();
    result.clear();
    written = 0;
  };
  for (const int at : group) add(at);
  const size_t most = MostOperands(p_.vars[op(group[0]).out]);
  if (read.size() + written <= most) return end();
  const std::vector<int> order = DepthFirst(group);
  piece.clear();
  end();
  for (const int at : order) {
    const std::unordered_set<VarId> operands(op(at).operands.begin(), op(at).operands.end());
    const auto more =
        static_cast<size_t>(std::count_if(operands.begin(), operands.end(), [&](VarId v) {
          return !read.count(v) && !result.count(v);
        }));
    if (read.size() + written + more + 1 > most) end();
    add(at);
  }
  end();
}

}  // namespace heddle::passes
