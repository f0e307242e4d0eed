#include "passes/fuse/element_groups.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "core/interrupts.h"
#include "core/memory/bytes.h"
#include "passes/fuse/convex_groups.h"
#include "passes/places.h"

namespace heddle::passes {

using ir::VarId;

// The number of inputs and results that a loop may have. The memory of all is in use while the loop
// runs: a group that exceeds the first-level cache is slower than several groups (the selective
// scan of benchmarks/loops.py, unrolled: one loop of 256 operands of 2 KiB takes half as long again
// as loops of 24, which are faster than no fusion). Unknown sizes are taken to be large.
size_t MostOperands(const ir::Var& result) {
  constexpr size_t kAlways = 24, kMostBytes = 48 << 10;
  if (!result.shape.is_static()) return kAlways;
  return std::max(kAlways, kMostBytes / std::max<size_t>(1, BytesFor(result.dtype, result.shape)));
}

ElementGroups::ElementGroups(const ir::Program& program, const GraphView& view,
                             const OrderGraph& order)
    : p_(program), block_(program.blocks[static_cast<size_t>(view.block())].ops), view_(view) {
  ops_ = FindElementOps(program, view);
  const auto joins = [this](int producer, int reader) { return Joins(producer, reader); };
  for (const std::vector<int>& group : ConvexGroups(order, ops_, joins)) Cut(group);
}

bool ElementGroups::Joins(int producer, int reader) const {
  const ElementOp &a = op(producer), &b = op(reader);
  if (!a.fusable || !b.fusable) return false;
  if (!SamePlace(block_[static_cast<size_t>(producer)], block_[static_cast<size_t>(reader)]))
    return false;
  const ir::Var &x = p_.vars[a.out], &y = p_.vars[b.out];
  return x.dtype == y.dtype && x.shape == y.shape;
}

namespace {

std::vector<VarId> Distinct(std::vector<VarId> operands) {
  std::sort(operands.begin(), operands.end());
  operands.erase(std::unique(operands.begin(), operands.end()), operands.end());
  return operands;
}

}  // namespace

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

// Splits a group of very many operands into pieces of few. Members before it have computed what a
// member reads of its group, so that no piece waits for a later one.
void ElementGroups::Cut(const std::vector<int>& group) {
  std::vector<int> piece;
  std::unordered_set<VarId> read;            // from outside the piece
  std::unordered_map<VarId, size_t> result;  // of the piece: the readers that are still outside it
  size_t written = 0;                        // results that have such readers
  const auto add = [&](int at) {
    const ElementOp& member = op(at);
    for (VarId v : Distinct(member.operands)) {
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
    LookForInterrupt();
    const std::vector<VarId> operands = Distinct(op(at).operands);
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
