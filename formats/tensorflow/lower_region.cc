// Lowers the items of regions in their order: nodes, branches, loops and calls.
#include <algorithm>

#include "core/error.h"
#include "core/own_ops/own_registry.h"
#include "formats/tensorflow/blocks.h"
#include "formats/tensorflow/direct/ops_direct.h"
#include "formats/tensorflow/handlers.h"
#include "formats/tensorflow/lower.h"
#include "formats/tensorflow/types/op_types.h"

namespace heddle::tensorflow {
namespace {

// The most nodes in all, calls expanded: functions in a file of a few bytes can call each other so
// that no memory holds the result.
constexpr size_t kMostNodes = 1'000'000;
// The deepest nesting of functions, branches and loops, which are lowered by recursion.
constexpr int kMostRegions = 256;

// Any node of the region, for messages; -1: it has none.
int SomeNode(const Region& region) {
  for (const Item& item : region.items) {
    if (item.node >= 0) return item.node;
    if (item.loop != nullptr) return item.loop->condition.node;
    for (const Region& side : item.branches->sides)
      if (const int node = SomeNode(side); node >= 0) return node;
    if (!item.branches->joins.empty()) return item.branches->joins[0].merge;
  }
  return -1;
}

int SomeNode(const Branches& branches) {
  if (!branches.joins.empty()) return branches.joins[0].merge;
  const int node = SomeNode(branches.sides[0]);
  return node >= 0 ? node : SomeNode(branches.sides[1]);
}

}  // namespace

int Lowering::KnownValueOf(const Instance& instance, Source source) {
  const auto port = static_cast<size_t>(source.port);
  if (source.node == Source::kArgument)
    return port < instance.arguments.size() ? instance.arguments[port] : kNoDraft;
  if (!source.is_node()) return kNoDraft;
  const std::vector<int>& values = instance.values[static_cast<size_t>(source.node)];
  return port < values.size() ? values[port] : kNoDraft;
}

int Lowering::ValueOf(Instance& instance, Source source, const Node& reader,
                      std::string_view name) {
  if (const int known = KnownValueOf(instance, source); known != kNoDraft) return known;
  // An erroneous node's outputs are not reported as missing at the nodes that use them.
  if (source.node != Source::kArgument && source.is_node() &&
      instance.values[static_cast<size_t>(source.node)].empty() &&
      (!builder_.ok() || has_unknown()))
    return NewVar(FreshName(name), DType::kUnknown);
  builder_.Problem(Where(reader, instance), ": '", name,
                   "' is an output that its node does not have");
  return NewVar(FreshName(name), DType::kUnknown);
}

void Lowering::LowerRegion(const Region& region, Instance& instance) {
  if (regions_ >= kMostRegions) {
    if (!too_deep_)
      builder_.Problem("calls, branches and loops lie in each other more than ", kMostRegions,
                       " deep");
    too_deep_ = true;
    return;
  }
  ++regions_;
  for (const Item& item : region.items) {
    if (++nodes_lowered_ > kMostNodes) break;
    if (item.branches != nullptr)
      LowerBranches(*item.branches, instance);
    else if (item.loop != nullptr)
      LowerLoop(*item.loop, instance);
    else
      LowerNode(instance, item.node);
  }
  --regions_;
  if (nodes_lowered_ > kMostNodes && instance.depth == 0)
    builder_.Problem("more than ", kMostNodes, " nodes, those of called functions included");
}

// Prepares a node for operands of unsigned types; true: it is lowered already, or refused.
bool Lowering::LowerUnsignedForm(NodeLowering& n) {
  const int type = n.UnsignedType();
  if (type == kNoType) return false;
  const auto use = UnsignedUseOf(n.op(), type);
  if (!n.SetUnsigned(use, type)) {
    n.Result(0, n.NewVar(DType::kUnknown));
    return true;
  }
  return use == formats::UnsignedUse::kOwn && LowerUnsigned(n, type);
}

// Checks the types and the form of a node as TensorFlow does when it loads a graph. False:
// something is wrong, and has been reported.
bool Lowering::CheckForm(NodeLowering& n, int at) {
  const NodeGraph& graph = *n.instance().graph;
  const std::vector<std::string_view>& names = graph.links(at).names;
  const auto type_of = [&](size_t i) {
    // The graph's own input, even if a feed replaces it.
    const Source source = graph.Original(at, i);
    if (!source.is_node()) return int{kNoType};
    const Node& from = graph.node(source.node);
    return DefinedType(from.op, static_cast<size_t>(source.port), [&](std::string_view name) {
      return AttributeIn(n.instance(), from, name);
    });
  };
  const std::string wrong = FindWrongType(
      n.op(), names, [&](std::string_view name) { return n.Find(name); }, type_of);
  if (!wrong.empty()) n.Problem(wrong);
  const std::string form =
      FindWrongForm(n.op(), names.size(), [&](std::string_view name) { return n.Find(name); });
  if (!form.empty()) n.Problem(form);
  const std::string value =
      FindWrongValue(n.op(), [&](std::string_view name) { return n.Find(name); });
  if (!value.empty()) n.Problem(value);
  return CheckRanks(n, at) && wrong.empty() && form.empty() && value.empty();
}

// The same for ranks as far as they are known. A fed value of unknown rank gets the only rank that
// is allowed.
bool Lowering::CheckRanks(NodeLowering& n, int at) {
  const auto& links = n.instance().graph->links(at);
  bool right = true;
  for (size_t i = 0; i < links.inputs.size(); ++i) {
    RankRange allowed = RanksOf(n.op(), i);
    const RankRange kernel = KernelRanksOf(n.op(), i, links.inputs.size());
    allowed.least = std::max(allowed.least, kernel.least);
    allowed.most = std::min(allowed.most, kernel.most);
    const int v = KnownValueOf(n.instance(), links.inputs[i]);
    if (v == kNoDraft || facts(v).kind != Kind::kTensor) continue;
    const int rank = n.rank(v);
    if (rank < 0 && allowed.least == allowed.most && allowed.least > 0 && var(v).fed &&
        block() == 0 && facts(v).type != kString) {
      // A feed of another rank is then refused when it is given; one element serves as a scalar.
      Shape shape;
      for (int d = 0; d < allowed.least; ++d) shape.push_back(-1);
      facts(v).shape = shape;
      var(v).ranked = true;
      var(v).dims.assign(shape.begin(), shape.end());
    }
    if (rank < 0 || (rank >= allowed.least && rank <= allowed.most)) continue;
    n.Problem("input ", i, " ('", links.names[i], "') has rank ", rank, ", shape ",
              n.shape(v).ToString(), "; rank ", allowed.least,
              allowed.most == allowed.least     ? ""
              : allowed.most == Shape::kMaxRank ? " or more"
                                                : StrCat(" to ", allowed.most),
              " is expected");
    right = false;
  }
  return right;
}

void Lowering::LowerNode(Instance& instance, int at) {
  const Node& node = instance.graph->node(at);
  instance.values[static_cast<size_t>(at)].clear();
  NodeLowering n(*this, node, instance, at);
  const Handler handler = FindHandler(node.op);
  if (handler != nullptr && !CheckForm(n, at)) return;
  if (MovesElements(node.op)) n.EncodeStrings();
  bool done = handler != nullptr && (LowerUnsignedForm(n) || handler(n));
  if (!done && functions_.contains(node.op)) {
    FunctionName function;
    function.name = node.op;
    function.attributes = node.attributes;
    const std::vector<int> results = Call(n, function, n.AllInputs());
    for (size_t k = 0; k < results.size(); ++k) n.Result(k, results[k]);
    done = true;
  }
  if (const OpDef* own = done ? nullptr : FindOwnOpOfFile(node.op); own != nullptr)
    done = LowerInWords(n, formats::Words{own->name()}, n.AllInputs());
  if (!done) NoteUnknown(node.op, Where(node, instance));
  FetchNow(instance, at);
}

void Lowering::LowerBranches(const Branches& branches, Instance& instance) {
  const int at = std::max(SomeNode(branches), 0);
  NodeLowering n(*this, instance.graph->node(at), instance, at);
  const int equals = branches.predicate.equals;
  const int given = ValueOf(instance, branches.predicate.value, n.node(), "the predicate");
  const auto set = [&](const Branches::Join& join, int value, int number) {
    instance.values[static_cast<size_t>(join.merge)] = {value, number};
    if (!join.is_inside) FetchNow(instance, join.merge);
  };
  // In a side's block: the number of the Merge's input that has its value; kNoDraft if that is
  // fixed.
  const auto inside = [&](const Branches::Join& join, size_t side) {
    const auto& values = instance.values[static_cast<size_t>(join.merge)];
    return join.inputs[side] != Branches::kInside || values.size() < 2 ? kNoDraft : values[1];
  };
  // The condition is a constant: only one side is lowered, in place.
  if (const auto known = n.ConstantInts(given); known && known->size() == 1) {
    const size_t side = (equals < 0 ? (*known)[0] != 0 : (*known)[0] == equals) ? 1 : 0;
    LowerRegion(branches.sides[side], instance);
    for (const Branches::Join& join : branches.joins) {
      const int number = inside(join, side);
      set(join, ValueOf(instance, join.sides[side], n.node(), "a side"),
          number != kNoDraft ? number : n.IntConstant(join.inputs[side], DType::kI32));
    }
    return;
  }
  const int condition =
      equals < 0 ? given : n.Binary("equal", given, n.IntConstant(equals, n.dtype(given)));
  std::vector<int> results[2], numbers[2];
  int blocks[2];
  for (size_t s = 0; s < 2; ++s) {
    blocks[s] = n.NewBlock();
    const int outer = n.SwitchBlock(blocks[s]);
    LowerRegion(branches.sides[s], instance);
    for (const Branches::Join& join : branches.joins) {
      results[s].push_back(ValueOf(instance, join.sides[s], n.node(), "a side"));
      numbers[s].push_back(inside(join, s));
    }
    n.SwitchBlock(outer);
    for (int& v : results[s]) v = Deliver(n, v, blocks[s]);
  }
  const bool uses_number =
      std::any_of(branches.joins.begin(), branches.joins.end(), [&](const Branches::Join& join) {
        return instance.graph->IsUsed({join.merge, 1});
      });
  for (size_t s = 0; s < 2 && uses_number; ++s)
    for (int& v : numbers[s])
      if (v != kNoDraft) v = Deliver(n, v, blocks[s]);
  RunIf(n, condition, blocks[1]);
  RunIf(n, n.Make("logical_not", {{"X", {condition}}}), blocks[0]);
  if (branches.joins.empty()) return;
  const int side = n.Cast(condition, DType::kI32);
  for (size_t k = 0; k < branches.joins.size(); ++k) {
    const Branches::Join& join = branches.joins[k];
    const int value = Chosen(n, {results[0][k], results[1][k]}, side);
    if (!instance.graph->IsUsed({join.merge, 1})) {
      set(join, value, side);
      continue;
    }
    int input[2];
    for (size_t s = 0; s < 2; ++s)
      input[s] =
          numbers[s][k] != kNoDraft ? numbers[s][k] : n.IntConstant(join.inputs[s], DType::kI32);
    set(join, value, Chosen(n, {input[0], input[1]}, side));
  }
}

void Lowering::LowerLoop(const Loop& loop, Instance& instance) {
  const int at = loop.condition.node;
  NodeLowering n(*this, instance.graph->node(at), instance, at);
  const auto value = [&](Source source) {
    return ValueOf(instance, source, n.node(), "a value of the loop");
  };
  for (int enter : loop.invariants) {
    NodeLowering e(*this, instance.graph->node(enter), instance, enter);
    instance.values[static_cast<size_t>(enter)] = {e.In(0)};
  }
  std::vector<Carried> carried;
  for (const Loop::Variable& v : loop.variables) {
    const int first = value(v.first);
    // A value that the loop returns unchanged is not carried.
    const bool stays = std::any_of(v.switches.begin(), v.switches.end(), [&](int s) {
      return v.next == Source{s, 1};
    });
    const Node& merge = instance.graph->node(v.merge);
    const bool changes = !stays && v.next != Source{v.merge, 0};
    const int var = changes ? CarryIn(n, first, merge, 0) : first;
    carried.push_back({var, &merge, 0, false});
    instance.values[static_cast<size_t>(v.merge)] = {var};
    for (int s : v.switches) instance.values[static_cast<size_t>(s)] = {var, var};
  }
  LowerRegion(loop.before, instance);
  const int condition = CopyOf(n, value(loop.condition));
  const int block = n.NewBlock();
  const int outer = n.SwitchBlock(block);
  LowerRegion(loop.body, instance);
  std::vector<int> next;
  for (const Loop::Variable& v : loop.variables) next.push_back(value(v.next));
  CarryOn(n, carried, next);
  LowerRegion(loop.before, instance);
  Assign(n, value(loop.condition), condition);
  n.SwitchBlock(outer);
  RunWhile(n, condition, block);
  for (size_t k = 0; k < carried.size(); ++k) {
    for (int exit : loop.variables[k].exits) {
      instance.values[static_cast<size_t>(exit)] = {carried[k].var};
      FetchNow(instance, exit);
    }
  }
}

}  // namespace heddle::tensorflow
