// Lowers If, Loop, Scan and SequenceMap to conditional_block and while.
#include <algorithm>
#include <limits>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "core/shapes.h"
#include "formats/lowering/regions.h"
#include "formats/onnx/handlers.h"

namespace heddle::onnx {
namespace {

const Graph* GraphOf(NodeLowering& n, std::string_view name) {
  const Attribute* a = n.Find(name);
  if (a != nullptr && a->graph != nullptr) return a->graph.get();
  n.Problem("needs a graph as '", name, "'");
  return nullptr;
}

// Replaces variables by others in the operators of `block` and of all blocks inside it.
void Rename(NodeLowering& n, const std::map<int, int>& renamed, int block) {
  if (renamed.empty()) return;
  auto& blocks = n.lowering().draft().blocks;
  for (size_t b = static_cast<size_t>(block); b < blocks.size(); ++b)
    for (DraftOp& op : blocks[b].ops)
      for (auto* slots : {&op.inputs, &op.outputs})
        for (auto& [slot, vars] : *slots)
          for (int& v : vars)
            if (const auto to = renamed.find(v); to != renamed.end()) v = to->second;
}

// Has `block` write its values `from` to the variables `to` of the block around it: a value that
// the block makes itself is replaced by the outer variable, any other is assigned.
void Deliver(NodeLowering& n, const std::vector<int>& from, const std::vector<int>& to, int block) {
  std::map<int, int> renamed;
  for (size_t i = 0; i < from.size(); ++i) {
    if (to[i] == kNoDraft) continue;
    int v = from[i];
    if (const auto known = renamed.find(v); known != renamed.end()) {
      v = known->second;
    } else if (n.draft_var(v).block == block && n.facts(v).data == nullptr &&
               n.facts(v).value == nullptr) {
      renamed.emplace(v, to[i]);
      continue;
    }
    const int outer = n.SwitchBlock(block);
    Assign(n, v, to[i]);
    n.SwitchBlock(outer);
  }
  Rename(n, renamed, block);
}

bool LowerIf(NodeLowering& n) {
  const int condition = n.Required(0);
  const Graph* branches[] = {GraphOf(n, "then_branch"), GraphOf(n, "else_branch")};
  if (branches[0] == nullptr || branches[1] == nullptr) return true;
  const size_t count = n.node().outputs.size();
  for (const Graph* g : branches) {
    if (g->outputs.size() == count && g->inputs.empty()) continue;
    n.Problem("has ", count, " outputs; one of its branches has ", g->outputs.size(), " and ",
              g->inputs.size(), " inputs");
    return true;
  }
  // The condition is a constant: only one branch is lowered, in place.
  if (const auto known = n.ConstantInts(condition); known && known->size() == 1) {
    NameScope names;
    const auto made = n.LowerBody(*branches[(*known)[0] != 0 ? 0 : 1], &names, n.block());
    for (size_t i = 0; i < count; ++i) n.Result(i, made[i]);
    return true;
  }
  std::vector<int> results[2], made;
  int blocks[2];
  for (size_t b = 0; b < 2; ++b) {
    blocks[b] = n.NewBlock();
    NameScope names;
    results[b] = n.LowerBody(*branches[b], &names, blocks[b]);
  }
  // Both branches write the same outer variable.
  for (size_t i = 0; i < count; ++i) {
    made.push_back(kNoDraft);
    if (!n.Wants(i)) continue;
    const int yes = results[0][i], no = results[1][i];
    made[i] = LikeVar(n, n.dtype(yes) == DType::kUnknown ? no : yes, n.block());
    n.facts(made[i]).shape = AgreedShape(n, {yes, no});
    n.facts(made[i]).joined = true;
  }
  for (size_t b = 0; b < 2; ++b) Deliver(n, results[b], made, blocks[b]);
  RunIf(n, condition, blocks[0]);
  RunIf(n, n.Make("logical_not", {{"X", {condition}}}), blocks[1]);
  for (size_t i = 0; i < count; ++i)
    if (n.Wants(i)) n.Result(i, made[i]);
  return true;
}

// --- loops

// A loop that is being lowered: its block and the variables that it carries from iteration to
// iteration.
struct Turns {
  int block = 0;
  int index = kNoDraft;      // int64 scalar: 0, 1, …
  int condition = kNoDraft;  // whether there is another iteration
  std::vector<int> carried;
};

// Makes the variable in which the loop carries a value. It is assumed to keep the rank of its
// initial value; LowerTurns checks that when the body is lowered.
int CarryIn(NodeLowering& n, int v) {
  const int made = CopyOf(n, v);
  Shape& shape = n.facts(made).shape;
  for (int i = 0; i < shape.rank(); ++i) shape[i] = -1;
  n.facts(made).typed = true;
  return made;
}

// Traces the values of a graph back through its Identity nodes.
class Origins {
 public:
  explicit Origins(const Graph& graph) {
    for (const Node& node : graph.nodes)
      if (node.op_type == "Identity" && node.domain.empty() && node.inputs.size() == 1 &&
          node.outputs.size() == 1)
        from_.emplace(node.outputs[0], node.inputs[0]);
  }

  // The name of the value that `name` is a copy of; on a cycle, any name of it.
  std::string_view Of(std::string_view name) {
    std::string_view origin = name;
    for (size_t hops = 0; hops <= from_.size(); ++hops) {
      const auto next = from_.find(origin);
      if (next == from_.end()) break;
      origin = next->second;
    }
    // Path compression: all names on the way now lead to the origin directly.
    while (name != origin) {
      const auto next = from_.find(name);
      if (next == from_.end()) break;
      name = std::exchange(next->second, origin);
    }
    return origin;
  }

 private:
  std::unordered_map<std::string_view, std::string_view> from_;
};

// Begins a loop whose body has its states as inputs from `in` on and as outputs from `out` on. A
// state that the body returns unchanged stays the outer variable.
Turns Begin(NodeLowering& n, const std::vector<int>& initial, int first_condition,
            const Graph& body, size_t in, size_t out) {
  Turns turns;
  turns.index = CopyOf(n, n.IntConstant(0));
  turns.condition = CopyOf(n, first_condition);
  std::vector<bool>& growing = n.lowering().growing(n.node());
  growing.resize(initial.size());
  Origins origins(body);
  for (size_t i = 0; i < initial.size(); ++i) {
    const bool handed_on = origins.Of(body.outputs[out + i].name) == body.inputs[in + i].name;
    turns.carried.push_back(handed_on ? initial[i] : CarryIn(n, initial[i]));
    if (growing[i]) n.facts(turns.carried[i]).shape = Shape::Unknown();
  }
  turns.block = n.NewBlock();
  return turns;
}

// Lowers the body and returns all its outputs; those from `first` on are the next values of the
// carried variables. Carried values are assumed to keep their initial rank. Where the body gives
// one another or an unknown rank, the body is lowered again with that value's rank unknown.
std::vector<int> LowerTurns(NodeLowering& n, const Graph& body, const Turns& turns, size_t first,
                            NameScope* names) {
  const Lowering::Mark mark = n.lowering().MarkAt(turns.block);
  for (int tries = 1;; ++tries) {
    NameScope inside = *names;
    std::vector<int> made = n.LowerBody(body, &inside, turns.block);
    std::vector<bool>& growing = n.lowering().growing(n.node());
    bool grown = false;
    for (size_t i = 0; i < turns.carried.size(); ++i) {
      const int carried = turns.carried[i];
      const int next = made[first + i];
      if (n.rank(carried) < 0 || next == carried || n.rank(next) == n.rank(carried)) continue;
      growing[i] = grown = true;
    }
    if (!grown) return made;
    // A value of changing rank may make others change. From the second try on, all that the body
    // changes are treated so.
    for (size_t i = 0; i < turns.carried.size(); ++i) {
      if (tries > 1 && made[first + i] != turns.carried[i]) growing[i] = true;
      if (growing[i]) n.facts(turns.carried[i]).shape = Shape::Unknown();
    }
    n.lowering().GoBack(mark);
  }
}

// An array for the items that the body makes, one per iteration.
int NewArray(NodeLowering& n) {
  const int array = n.NewVar(DType::kUnknown, "array");
  n.draft_var(array).kind = ir::VarKind::kArray;
  return array;
}

void Push(NodeLowering& n, int item, int index, int array) {
  n.Emit("write_to_array", {{"X", {n.AsItem(item)}}, {"I", {index}}}, {}, {{"Out", {array}}});
}

// The shape of an item, for the case that there is none at run time: dimensions that are not known
// are taken from the body's declaration.
Ints ItemShape(NodeLowering& n, int item, const Type& declared) {
  const bool ranked = n.rank(item) >= 0;
  Ints dims = ranked ? Ints(n.shape(item).begin(), n.shape(item).end())
                     : Ints(declared.dims.begin(), declared.dims.end());
  if (ranked && declared.ranked && declared.dims.size() == dims.size())
    for (size_t i = 0; i < dims.size(); ++i)
      if (dims[i] < 0) dims[i] = declared.dims[i];
  return dims;
}

// Stacks the items of an array on a new axis; `declared`: the type of an item in the body.
int Stacked(NodeLowering& n, int array, int item, const Type& declared, int64_t axis,
            bool reverse) {
  const int type = n.type(item) == kUndefinedType ? TypeOf(n.dtype(item)) : n.type(item);
  Ins ins = {{"list", {array}}};
  Attrs attrs = {{"axis", axis}, {"reverse", reverse}};
  const DType dtype = type == kString ? DType::kI64 : n.dtype(item);
  if (dtype != DType::kUnknown) attrs.emplace_back("dtype", DTypeToProto(dtype));
  if (const Ints dims = ItemShape(n, item, declared); !dims.empty())
    ins.emplace_back("element_shape", std::vector<int>{n.IntsConstant(dims)});
  int made = n.Make("list_stack", std::move(ins), std::move(attrs));
  n.draft_var(made).dtype = dtype;
  made = n.FromItem(made, type);
  n.SetType(made, type);
  if (n.rank(item) >= 0) {
    Shape shape = n.shape(item);
    for (int i = 0; i < shape.rank(); ++i) shape[i] = -1;
    if (shape.rank() < Shape::kMaxRank) shape.push_back(-1);
    n.facts(made).shape = shape;
  }
  return made;
}

void NextIndex(NodeLowering& n, int index) {
  n.Emit("increment", {{"X", {index}}}, {{"step", 1.0}}, {{"Out", {index}}});
}

bool LowerLoop(NodeLowering& n) {
  const Graph* body = GraphOf(n, "body");
  if (body == nullptr) return true;
  const size_t states = n.inputs() < 2 ? 0 : n.inputs() - 2;
  if (body->inputs.size() != states + 2 || body->outputs.size() < states + 1 ||
      n.node().outputs.size() > body->outputs.size() - 1) {
    n.Problem("carries ", states, " values and has ", n.node().outputs.size(),
              " outputs; its body has ", body->inputs.size(), " inputs and ", body->outputs.size(),
              " outputs");
    return true;
  }
  const int limit = n.In(0), first = n.In(1);
  int condition = first != kNoDraft ? first : n.IntConstant(1, DType::kBool);
  if (limit != kNoDraft) {
    const int more = n.Binary("less_than", n.IntConstant(0), limit);
    condition = first != kNoDraft ? n.Binary("logical_and", condition, more) : more;
  }
  Turns turns = Begin(n, n.AllInputs(std::min<size_t>(2, n.inputs())), condition, *body, 2, 1);
  NameScope names;
  names.vars.emplace(body->inputs[0].name, turns.index);
  names.vars.emplace(body->inputs[1].name, n.IntConstant(1, DType::kBool));
  for (size_t i = 0; i < states; ++i)
    names.vars.emplace(body->inputs[i + 2].name, turns.carried[i]);
  n.facts(turns.index).shape = Shape();
  const std::vector<int> made = LowerTurns(n, *body, turns, 1, &names);
  const size_t scans = body->outputs.size() - 1 - states;
  std::vector<int> arrays;
  for (size_t i = 0; i < scans; ++i) arrays.push_back(NewArray(n));
  const int outer = n.SwitchBlock(turns.block);
  for (size_t i = 0; i < scans; ++i) Push(n, made[1 + states + i], turns.index, arrays[i]);
  CarryOn(n, turns.carried, {made.begin() + 1, made.begin() + 1 + static_cast<int64_t>(states)});
  NextIndex(n, turns.index);
  // Constant, also where the body returns its condition input.
  const auto goes_on = n.ConstantInts(made[0]);
  if (limit == kNoDraft) {
    Assign(n, made[0], turns.condition);
  } else if (goes_on && goes_on->size() == 1 && (*goes_on)[0] != 0) {
    n.Emit("less_than", {{"X", {turns.index}}, {"Y", {limit}}}, {}, {{"Out", {turns.condition}}});
  } else {
    const int more = n.Binary("less_than", turns.index, limit);
    n.Emit("logical_and", {{"X", {made[0]}}, {"Y", {more}}}, {}, {{"Out", {turns.condition}}});
  }
  n.SwitchBlock(outer);
  RunWhile(n, turns.condition, turns.block);
  for (size_t i = 0; i < states; ++i) n.Result(i, turns.carried[i]);
  for (size_t i = 0; i < scans; ++i)
    if (n.Wants(states + i))
      n.Result(states + i, Stacked(n, arrays[i], made[1 + states + i],
                                   body->outputs[1 + states + i].type, 0, false));
  return true;
}

// Dimension `axis` of `v`, as an int64 scalar.
int DimOf(NodeLowering& n, int v, int64_t axis) {
  const int64_t end = axis == -1 ? std::numeric_limits<int32_t>::max() : axis + 1;
  return n.Make(
      "slice", {{"Input", {n.ShapeOf(v)}}},
      {{"axes", Ints{0}}, {"starts", Ints{axis}}, {"ends", Ints{end}}, {"decrease_axis", Ints{0}}});
}

int64_t ItemOf(const Ints& list, size_t i) { return i < list.size() ? list[i] : 0; }

// The operands and attributes of a Scan, of any version.
struct Scan {
  const Graph* body = nullptr;
  std::vector<int> states, scans;
  Ints in_axes, in_back, out_axes, out_back;
  int length = kNoDraft;  // how many of the items count; absent: all
};

// `v` while the turn counts, else `otherwise`.
int WhileCounted(NodeLowering& n, int counts, int v, int otherwise) {
  const int made = n.Make("where", {{"Condition", {counts}}, {"X", {v}}, {"Y", {otherwise}}});
  n.SetType(made, n.type(v));
  n.facts(made).shape = n.shape(v);
  return made;
}

// Ends the block of `count` turns and runs it: each turn hands `carried` on, and pushes its items
// to the arrays.
void RunCounted(NodeLowering& n, Turns& turns, int count, const std::vector<int>& carried,
                const std::vector<int>& items, const std::vector<int>& arrays) {
  const int outer = n.SwitchBlock(turns.block);
  for (size_t i = 0; i < items.size(); ++i) Push(n, items[i], turns.index, arrays[i]);
  CarryOn(n, turns.carried, carried);
  NextIndex(n, turns.index);
  n.Emit("less_than", {{"X", {turns.index}}, {"Y", {count}}}, {}, {{"Out", {turns.condition}}});
  n.SwitchBlock(outer);
  RunWhile(n, turns.condition, turns.block);
}

// Lowers a Scan and returns the final states, then the stacked outputs.
std::vector<int> RunScan(NodeLowering& n, Scan scan) {
  const Graph& body = *scan.body;
  std::vector<int> types;
  for (int& x : scan.scans) {
    types.push_back(n.type(x));
    x = n.AsItem(x);
  }
  const size_t states = scan.states.size();
  const int count = DimOf(n, scan.scans[0], ItemOf(scan.in_axes, 0));
  Turns turns = Begin(n, scan.states, n.Binary("less_than", n.IntConstant(0), count), body, 0, 0);
  n.facts(turns.index).shape = Shape();
  const int outer = n.SwitchBlock(turns.block);
  NameScope names;
  for (size_t i = 0; i < states; ++i) names.vars.emplace(body.inputs[i].name, turns.carried[i]);
  const int last =
      n.Binary("elementwise_sub", scan.length != kNoDraft ? scan.length : count, n.IntConstant(1));
  for (size_t i = 0; i < scan.scans.size(); ++i) {
    int at = turns.index;
    if (ItemOf(scan.in_back, i) != 0) at = n.Binary("elementwise_sub", last, at);
    // Turns that do not count read any item.
    if (scan.length != kNoDraft) at = n.Binary("elementwise_max", at, n.IntConstant(0));
    const int x = scan.scans[i];
    const int item = n.FromItem(
        n.Make("gather", {{"X", {x}}, {"Index", {at}}},
               {{"axis", ItemOf(scan.in_axes, i)}, {"index_shape", true}, {"wrap", true}}),
        types[i]);
    n.SetType(item, types[i]);
    names.vars.emplace(body.inputs[states + i].name, item);
  }
  n.SwitchBlock(outer);
  std::vector<int> made = LowerTurns(n, body, turns, 0, &names);
  const size_t stacked = body.outputs.size() - states;
  if (scan.length != kNoDraft) {
    n.SwitchBlock(turns.block);
    const int counts = n.Binary("less_than", turns.index, scan.length);
    for (size_t i = 0; i < made.size(); ++i) {
      if (i < states && made[i] == turns.carried[i]) continue;
      const int otherwise = i < states
                                ? turns.carried[i]
                                : n.Make("fill_any_like", {{"X", {made[i]}}}, {{"value", 0.0}});
      made[i] = WhileCounted(n, counts, made[i], otherwise);
    }
    n.SwitchBlock(outer);
  }
  std::vector<int> arrays;
  for (size_t i = 0; i < stacked; ++i) arrays.push_back(NewArray(n));
  const auto items = made.begin() + static_cast<int64_t>(states);
  RunCounted(n, turns, count, {made.begin(), items}, {items, made.end()}, arrays);
  std::vector<int> results = turns.carried;
  for (size_t i = 0; i < stacked; ++i)
    results.push_back(Stacked(n, arrays[i], made[states + i], body.outputs[states + i].type,
                              ItemOf(scan.out_axes, i), ItemOf(scan.out_back, i) != 0));
  return results;
}

// Lowers a Scan of opset 8, whose operands have a batch axis in front, for the item `b` of the
// batch. `lengths`: those of the sequences; absent: all are whole.
std::vector<int> RunItem(NodeLowering& n, Scan scan, int lengths, int b) {
  const auto item = [&](int v) {
    const int made = n.Make("gather", {{"X", {v}}, {"Index", {b}}}, {{"index_shape", true}});
    n.SetType(made, n.type(v));
    return made;
  };
  for (int& state : scan.states) state = item(state);
  for (int& sequence : scan.scans) sequence = item(sequence);
  if (lengths != kNoDraft) scan.length = item(lengths);
  return RunScan(n, scan);
}

// Each item of the batch is scanned separately: one after the other where there are few, else in a
// loop.
std::vector<int> RunBatch(NodeLowering& n, const Scan& scan, int lengths) {
  constexpr int64_t kFewItems = 8;
  const int first = scan.scans[0];
  const int64_t batch = n.rank(first) > 0 ? n.shape(first)[0] : -1;
  std::vector<int> stacked;
  if (batch >= 1 && batch <= kFewItems) {
    std::vector<std::vector<int>> results;
    for (int64_t b = 0; b < batch; ++b) {
      const std::vector<int> made = RunItem(n, scan, lengths, n.IntConstant(b));
      results.resize(made.size());
      for (size_t i = 0; i < made.size(); ++i) results[i].push_back(made[i]);
    }
    for (const std::vector<int>& parts : results) {
      stacked.push_back(n.Make("stack", {{"X", parts}}, {{"axis", int64_t{0}}}, "Y"));
      n.SetType(stacked.back(), n.type(parts[0]));
    }
    return stacked;
  }
  const int count = DimOf(n, first, 0);
  Turns turns = Begin(n, {}, n.Binary("less_than", n.IntConstant(0), count), *scan.body, 0, 0);
  n.facts(turns.index).shape = Shape();
  const int outer = n.SwitchBlock(turns.block);
  const std::vector<int> made = RunItem(n, scan, lengths, turns.index);
  n.SwitchBlock(outer);
  std::vector<int> arrays;
  for (size_t i = 0; i < made.size(); ++i) arrays.push_back(NewArray(n));
  RunCounted(n, turns, count, {}, made, arrays);
  for (size_t i = 0; i < made.size(); ++i)
    stacked.push_back(Stacked(n, arrays[i], made[i], scan.body->outputs[i].type, 0, false));
  return stacked;
}

bool LowerScan(NodeLowering& n) {
  Scan scan;
  scan.body = GraphOf(n, "body");
  if (scan.body == nullptr) return true;
  const bool batched = n.opset() < 9;  // its first input is the lengths of the sequences
  const size_t first = batched ? 1 : 0;
  const auto count = static_cast<size_t>(std::max<int64_t>(n.Int("num_scan_inputs", 0), 0));
  const size_t states = n.inputs() < count + first ? 0 : n.inputs() - count - first;
  if (count == 0 || n.inputs() < count + first || scan.body->inputs.size() != states + count ||
      scan.body->outputs.size() < states || n.node().outputs.size() > scan.body->outputs.size()) {
    n.Problem("has ", n.inputs(), " inputs, ", count, " of them to scan, and ",
              n.node().outputs.size(), " outputs; its body has ", scan.body->inputs.size(),
              " inputs and ", scan.body->outputs.size(), " outputs");
    return true;
  }
  const std::vector<int> inputs = n.AllInputs(first);
  scan.states.assign(inputs.begin(), inputs.begin() + static_cast<int64_t>(states));
  scan.scans.assign(inputs.begin() + static_cast<int64_t>(states), inputs.end());
  scan.in_axes = n.IntList("scan_input_axes");
  scan.in_back = n.IntList(batched ? "directions" : "scan_input_directions");
  scan.out_axes = n.IntList("scan_output_axes");
  scan.out_back = n.IntList("scan_output_directions");
  const std::vector<int> made =
      batched ? RunBatch(n, scan, n.Has(0) ? n.In(0) : kNoDraft) : RunScan(n, scan);
  for (size_t i = 0; i < made.size(); ++i)
    if (n.Wants(i)) n.Result(i, made[i]);
  return true;
}

// Runs the body for each item of the first sequence; further inputs are sequences of the same
// length, or tensors.
bool LowerSequenceMap(NodeLowering& n) {
  const Graph* body = GraphOf(n, "body");
  if (body == nullptr) return true;
  const std::vector<int> inputs = n.AllInputs();
  if (inputs.empty() || body->inputs.size() != inputs.size() ||
      n.node().outputs.size() > body->outputs.size()) {
    n.Problem("has ", inputs.size(), " inputs and ", n.node().outputs.size(),
              " outputs; its body has ", body->inputs.size(), " and ", body->outputs.size());
    return true;
  }
  const int count = n.Cast(n.Make("lod_array_length", {{"X", {inputs[0]}}}), DType::kI64);
  n.draft_var(count).dtype = DType::kI64;
  Turns turns = Begin(n, {}, n.Binary("less_than", n.IntConstant(0), count), *body, 0, 0);
  const int outer = n.SwitchBlock(turns.block);
  NameScope names;
  for (size_t i = 0; i < inputs.size(); ++i) {
    int item = inputs[i];
    if (n.kind(item) == Type::Kind::kSequence) {
      item = n.FromItem(n.Make("read_from_array", {{"X", {inputs[i]}}, {"I", {turns.index}}}),
                        n.type(inputs[i]));
      n.SetType(item, n.type(inputs[i]));
    }
    names.vars.emplace(body->inputs[i].name, item);
  }
  n.SwitchBlock(outer);
  const std::vector<int> made = n.LowerBody(*body, &names, turns.block);
  std::vector<int> arrays;
  for (int item : made) {
    arrays.push_back(NewArray(n));
    n.SetKind(arrays.back(), Type::Kind::kSequence, n.type(item));
  }
  RunCounted(n, turns, count, {}, made, arrays);
  for (size_t i = 0; i < made.size(); ++i) n.Result(i, arrays[i]);
  return true;
}

constexpr HandlerEntry kControlEntries[] = {
    {"", "If", &LowerIf},
    {"", "Loop", &LowerLoop},
    {"", "Scan", &LowerScan},
    {"", "SequenceMap", &LowerSequenceMap},
};

}  // namespace

std::span<const HandlerEntry> ControlHandlers() { return kControlEntries; }

}  // namespace heddle::onnx
