// Lowers calls of functions, and the loops and branches whose bodies are functions.
#include <algorithm>

#include "formats/tensorflow/blocks.h"
#include "formats/tensorflow/handlers.h"

namespace heddle::tensorflow {
namespace {

const FunctionName* FunctionOf(NodeLowering& n, std::string_view name) {
  const Attribute* a = n.Find(name);
  if (a != nullptr && a->kind == Attribute::kFunction) return a->function.get();
  n.Problem("needs a function as '", name, "'");
  return nullptr;
}

bool LowerCall(NodeLowering& n) {
  const FunctionName* f = FunctionOf(n, "f");
  if (f == nullptr) return true;
  std::vector<bool> given_away;
  for (size_t i = 0; i < n.inputs(); ++i) given_away.push_back(n.MayTake(i));
  const std::vector<int> results = n.lowering().Call(n, *f, n.AllInputs(), given_away);
  for (size_t k = 0; k < results.size(); ++k) n.Result(k, results[k]);
  return true;
}

// The function is called with copies of its arguments, and the gradients are noted: the sum of what
// it gives, each result times its given gradient, by each copy. Until they are computed, the node's
// outputs are zeros, and stay so for arguments on which no result depends.
bool LowerGradient(NodeLowering& n) {
  const FunctionName* f = FunctionOf(n, "f");
  const Attribute* types = n.Find("Tout");
  if (f == nullptr || types == nullptr) return false;
  const size_t count = types->ints.size();
  if (n.lowering().block() != 0) {
    n.Problem("is in a branch or a loop; gradients of functions are computed outside of them");
    return true;
  }
  if (n.inputs() < count) {
    n.Problem("gives gradients of ", count, " arguments, and has ", n.inputs(), " inputs");
    return true;
  }
  GradientNode node;
  node.where = std::string(n.node().name);
  for (size_t k = 0; k < count; ++k) node.arguments.push_back(CopyOf(n, n.In(k)));
  const std::vector<int> results = n.lowering().Call(n, *f, node.arguments);
  if (results.size() != n.inputs() - count) {
    n.Problem("has ", n.inputs() - count, " gradients of results, and function '", f->name,
              "' gives ", results.size());
    return true;
  }
  for (size_t k = 0; k < results.size(); ++k) {
    const DType dtype = n.dtype(results[k]);
    if (n.kind(results[k]) != Kind::kTensor) continue;
    if (dtype != DType::kUnknown && !IsFloat(dtype) && !IsComplex(dtype)) continue;
    node.losses.push_back(n.Binary("elementwise_mul", results[k], n.In(count + k)));
  }
  for (size_t k = 0; k < count; ++k) {
    node.gradients.push_back(n.Make("fill_zeros_like", {{"X", {node.arguments[k]}}}));
    n.Result(k, node.gradients.back());
  }
  if (!node.losses.empty()) n.lowering().AddGradient(std::move(node));
  return true;
}

// Lowers each function into a block of its own, which runs if its condition is true. `number`, the
// index of the function that ran, selects the results.
void RunOne(NodeLowering& n, const std::vector<const FunctionName*>& functions,
            const std::vector<int>& arguments, const std::vector<int>& conditions, int number) {
  std::vector<std::vector<int>> results;
  std::vector<int> blocks;
  for (const FunctionName* f : functions) {
    const int block = n.NewBlock();
    const int outer = n.SwitchBlock(block);
    results.push_back(n.lowering().Call(n, *f, arguments));
    n.SwitchBlock(outer);
    if (results.back().size() != results.front().size()) {
      n.Problem("functions '", functions.front()->name, "' and '", f->name, "' give ",
                results.front().size(), " and ", results.back().size(), " values");
      return;
    }
    for (int& v : results.back()) v = Deliver(n, v, block);
    blocks.push_back(block);
  }
  for (size_t b = 0; b < blocks.size(); ++b) RunIf(n, conditions[b], blocks[b]);
  for (size_t k = 0; k < results[0].size(); ++k) {
    std::vector<int> values;
    for (const auto& of_branch : results) values.push_back(of_branch[k]);
    n.Result(k, Chosen(n, values, number));
  }
}

void RunKnown(NodeLowering& n, const FunctionName& f, const std::vector<int>& arguments) {
  const std::vector<int> results = n.lowering().Call(n, f, arguments);
  for (size_t k = 0; k < results.size(); ++k) n.Result(k, results[k]);
}

bool LowerIf(NodeLowering& n) {
  const FunctionName* yes = FunctionOf(n, "then_branch");
  const FunctionName* no = FunctionOf(n, "else_branch");
  if (yes == nullptr || no == nullptr) return true;
  const int given = n.In(0);
  const std::vector<int> arguments = n.AllInputs(1);
  if (const auto known = n.ConstantInts(given); known && known->size() == 1) {
    RunKnown(n, (*known)[0] != 0 ? *yes : *no, arguments);
    return true;
  }
  const int condition = TruthOf(n, given);
  RunOne(n, {no, yes}, arguments, {n.Make("logical_not", {{"X", {condition}}}), condition},
         n.Cast(condition, DType::kI32));
  return true;
}

bool LowerCase(NodeLowering& n) {
  const Attribute* branches = n.Find("branches");
  if (branches == nullptr || branches->functions.empty()) {
    n.Problem("needs functions as 'branches'");
    return true;
  }
  std::vector<const FunctionName*> functions;
  for (const FunctionName& f : branches->functions) functions.push_back(&f);
  const std::vector<int> arguments = n.AllInputs(1);
  const auto last = static_cast<int64_t>(functions.size()) - 1;
  // An index out of range means the last function.
  const int index = n.Cast(n.In(0), DType::kI32);
  if (const auto known = n.ConstantInts(n.In(0)); known && known->size() == 1) {
    const int64_t k = (*known)[0];
    RunKnown(n, *functions[static_cast<size_t>(k < 0 || k > last ? last : k)], arguments);
    return true;
  }
  std::vector<int> conditions;
  int any = kNoDraft, number = n.IntConstant(last, DType::kI32);
  for (int64_t k = 0; k < last; ++k) {
    const int is = n.Binary("equal", index, n.IntConstant(k, DType::kI32));
    conditions.push_back(is);
    any = any == kNoDraft ? is : n.Binary("logical_or", any, is);
    const int step = n.IntConstant(k - last, DType::kI32);
    number = n.Binary("elementwise_add", number,
                      n.Binary("elementwise_mul", n.Cast(is, DType::kI32), step));
  }
  conditions.push_back(any == kNoDraft ? n.IntConstant(1, DType::kBool)
                                       : n.Make("logical_not", {{"X", {any}}}));
  RunOne(n, functions, arguments, conditions, number);
  return true;
}

// Whether the node declares that value `k` has the same rank in all iterations.
bool KeepsRank(NodeLowering& n, size_t k) {
  const Attribute* shapes = n.Find("output_shapes");
  return shapes != nullptr && k < shapes->shapes.size() && shapes->shapes[k].shape.known_rank();
}

bool LowerWhile(NodeLowering& n) {
  const FunctionName* cond = FunctionOf(n, "cond");
  const FunctionName* body = FunctionOf(n, "body");
  if (cond == nullptr || body == nullptr) return true;
  std::vector<int> carried = n.AllInputs();
  std::vector<bool> changes(carried.size());
  std::vector<Carried> values;
  for (size_t k = 0; k < carried.size(); ++k) {
    changes[k] = !n.lowering().HandsOn(n, *body, k);
    if (changes[k]) carried[k] = CarryIn(n, carried[k], n.node(), k);
    values.push_back({carried[k], &n.node(), k, KeepsRank(n, k)});
  }
  const auto goes_on = [&] {
    const std::vector<int> results = n.lowering().Call(n, *cond, carried);
    if (results.size() == 1) return TruthOf(n, results[0]);
    n.Problem("function '", cond->name, "' gives ", results.size(),
              " values, where one says "
              "whether to go on");
    return n.IntConstant(0, DType::kBool);
  };
  const int condition = CopyOf(n, goes_on());
  const int block = n.NewBlock();
  const int outer = n.SwitchBlock(block);
  const std::vector<int> next = n.lowering().Call(n, *body, carried, changes);
  if (next.size() != carried.size()) {
    n.Problem("carries ", carried.size(), " values; function '", body->name, "' gives ",
              next.size());
    n.SwitchBlock(outer);
    return true;
  }
  CarryOn(n, values, next);
  Assign(n, goes_on(), condition);
  n.SwitchBlock(outer);
  RunWhile(n, condition, block);
  for (size_t k = 0; k < carried.size(); ++k) n.Result(k, carried[k]);
  return true;
}

constexpr HandlerEntry kControlEntries[] = {
    {"PartitionedCall", &LowerCall},
    {"StatefulPartitionedCall", &LowerCall},
    {"SymbolicGradient", &LowerGradient},
    {"If", &LowerIf},
    {"StatelessIf", &LowerIf},
    {"Case", &LowerCase},
    {"StatelessCase", &LowerCase},
    {"While", &LowerWhile},
    {"StatelessWhile", &LowerWhile},
};

}  // namespace

std::span<const HandlerEntry> ControlHandlers() { return kControlEntries; }

}  // namespace heddle::tensorflow
