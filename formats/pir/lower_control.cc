// Lowers if, while and related operators to conditional_block, while and select_input.
#include <algorithm>
#include <unordered_set>
#include <utility>

#include "core/error.h"
#include "core/shapes.h"
#include "formats/pir/lower.h"

namespace heddle::pir {

// Lowers a block inside the present one and returns what it yields. Its values go out of scope.
Lowering::Yields Lowering::LowerRegion(const Block& block) {
  const int outer = SwitchBlock(block.number);
  draft_.blocks[static_cast<size_t>(block_)].parent = outer;
  yields_.emplace_back();
  LowerOperations(block);
  Yields yields = std::move(yields_.back());
  yields_.pop_back();
  SwitchBlock(outer);
  for (const Definition& argument : block.arguments) values_.erase(argument.id);
  for (const Operation& op : block.operations)
    for (const Definition& result : op.results) values_.erase(result.id);
  return yields;
}

void Lowering::LowerYield(const Operation& op) {
  if (yields_.empty()) return Problem(op, "outside of any if or while");
  Yields& yields = yields_.back();
  if (!yields.empty()) return Problem(op, "a second yield in its block");
  for (size_t i = 0; i < op.operands.size(); ++i) {
    const Binding* binding = Operand(op, i);
    yields.push_back(binding == nullptr ? Binding() : *binding);
  }
}

// Adds an operator that runs the lowered `body` under a condition.
void Lowering::Run(const Operation& op, std::string_view condition_slot, int condition,
                   const Block& body) {
  const bool is_branch = condition_slot == "Cond";
  // Paddle's operators require a variable for their scopes, even where no gradient uses it.
  const int scopes = NewOwn("scopes", DType::kUnknown);
  draft_.vars[static_cast<size_t>(scopes)].kind = ir::VarKind::kScopes;
  DraftOp& run = Emit(is_branch ? "conditional_block" : "while", op);
  In(&run, condition_slot, {condition});
  Out(&run, is_branch ? "Scope" : "StepScopes", {scopes});
  run.sub_block = body.number;
  run.attributes.emplace_back(is_branch ? "is_scalar_condition" : "is_test", true);
}

// Whether the false branch only makes placeholders: select_input alone reads the results, and it
// reads others when the condition is false.
bool Lowering::IsFake(const Operation& op) const {
  const Attribute* fake = op.Find("fake_false_branch");
  Numbers flag;
  if (fake == nullptr || !ReadNumbers(fake->value, &flag) || flag.size() != 1 || flag.reals[0] == 0)
    return false;
  return std::all_of(op.results.begin(), op.results.end(),
                     [&](const Definition& r) { return uses_.only_selected(r.id); });
}

// A variable of the present block for the block's `i`th yielded value.
int Lowering::Deliver(const Operation& op, const Block& from, size_t i, Yields* yields) {
  Binding& yielded = (*yields)[i];
  if (yielded.kind != Binding::Kind::kVar) {
    if (yielded.kind != Binding::Kind::kNothing)
      Problem(op, "yields a list or a stack as result ", i);
    return kNoDraft;
  }
  DraftVar& var = draft_.vars[static_cast<size_t>(yielded.var)];
  if (var.block == from.number) {
    var.block = block_;
    return yielded.var;
  }
  // A value from outside of the block, or one that was delivered already: it is copied.
  const int outer = SwitchBlock(from.number);
  const int copy = CopyOf(yielded.var, op);
  SwitchBlock(outer);
  draft_.vars[static_cast<size_t>(copy)].block = outer;
  return copy;
}

void Lowering::LowerIf(const Operation& op) {
  if (op.regions.size() != 2) return Problem(op, "has ", op.regions.size(), " regions, not 2");
  if (!HasOperands(op, 1, op.results.size())) return;
  const int condition = OperandVar(op, 0);
  const bool fake = IsFake(op);
  Yields yes = LowerRegion(op.regions[0]);
  Yields no = fake ? Yields(op.results.size()) : LowerRegion(op.regions[1]);
  draft_.blocks[static_cast<size_t>(op.regions[1].number)].parent = block_;
  if (yes.size() != op.results.size() || no.size() != op.results.size()) {
    Problem(op, "has ", op.results.size(), " results; its blocks yield ", yes.size(), " and ",
            no.size(), " values");
    for (const Definition& result : op.results) Bind(result.id, NewBinding(result));
    return;
  }
  struct Choice {
    const Definition* result;
    int yes, no;
  };
  std::vector<Choice> choices;
  for (size_t i = 0; i < op.results.size(); ++i) {
    const Definition& result = op.results[i];
    const bool same =
        yes[i].kind == Binding::Kind::kVar && no[i].kind == yes[i].kind && yes[i].var == no[i].var;
    if (same) {
      draft_.vars[static_cast<size_t>(yes[i].var)].shared = true;
      Bind(result.id, yes[i]);
      continue;
    }
    const bool wanted = result.type.kind != Type::Kind::kNone && uses_.used(result.id);
    const int from_yes = wanted ? Deliver(op, op.regions[0], i, &yes) : kNoDraft;
    if (fake || !wanted) {
      BindVar(result.id, from_yes);
      continue;
    }
    choices.push_back({&result, from_yes, Deliver(op, op.regions[1], i, &no)});
  }
  Run(op, "Cond", condition, op.regions[0]);
  if (!fake && !draft_.blocks[static_cast<size_t>(op.regions[1].number)].ops.empty()) {
    const int otherwise = NewOwn("not", DType::kBool);
    DraftOp& negate = Emit("logical_not", op);
    In(&negate, "X", {condition});
    Out(&negate, "Out", {otherwise});
    Run(op, "Cond", otherwise, op.regions[1]);
  }
  if (choices.empty()) return;
  const int mask = NewOwn("mask", DType::kI32);
  DraftOp& cast = Emit("cast", op);
  In(&cast, "X", {condition});
  Out(&cast, "Out", {mask});
  cast.attributes = {{"in_dtype", DTypeToProto(DType::kBool)},
                     {"out_dtype", DTypeToProto(DType::kI32)}};
  for (const Choice& choice : choices) {
    const Binding binding = NewBinding(*choice.result);
    DraftOp& select = Emit("select_input", op);
    In(&select, "Mask", {mask});
    In(&select, "X", {choice.no, choice.yes});
    Out(&select, "Out", {binding.var});
    Bind(choice.result->id, binding);
  }
}

// Whether the body writes the next condition to the condition operand itself, as converters of
// older programs do, and the operand is not used after the loop. (Other operands are copied to an
// argument of the block, which keeps its value during an iteration.)
bool Lowering::IsConditionInPlace(const Operation& op) const {
  const std::vector<Operation>& body = op.regions[0].operations;
  return !body.empty() && !body.back().operands.empty() &&
         uses_.are_one(op.operands[0], body.back().operands[0]) &&
         !uses_.used_behind(op.operands[0], op);
}

// The variable in which a loop carries its operand `i`: the operand's own if it is not used
// afterwards, else a copy.
int Lowering::CarryIn(const Operation& op, size_t i) {
  const Binding* binding = Operand(op, i);
  if (binding == nullptr) return kNoDraft;
  if (binding->kind != Binding::Kind::kVar) {
    Problem(op, "operand ", i, " (%", op.operands[i], ") must be one value");
    return kNoDraft;
  }
  const DraftVar& var = draft_.vars[static_cast<size_t>(binding->var)];
  if (var.kind == ir::VarKind::kArray) return binding->var;
  const bool ours = var.block == block_ && !var.named && !var.fed && !var.shared &&
                    (uses_.ends_with(op.operands[i], op) || (i == 0 && IsConditionInPlace(op)));
  if (!ours) return CopyOf(binding->var, op);
  constants_.erase(binding->var);  // the loop writes to it
  return binding->var;
}

// At the end of the body, assigns the next values to the carried variables, as if all at once.
void Lowering::CarryOn(const Operation& op, const Block& body, const std::vector<int>& carried,
                       const Yields& next) {
  const int outer = SwitchBlock(body.number);
  const std::unordered_set<int> all(carried.begin(), carried.end());
  std::vector<int> from;
  for (size_t i = 0; i < carried.size(); ++i) {
    int var = next[i].kind == Binding::Kind::kVar ? next[i].var : kNoDraft;
    const bool moves = var != kNoDraft && carried[i] != kNoDraft && var != carried[i];
    // A carried variable may be overwritten before it is read: its value is copied first.
    if (moves && all.contains(var)) var = CopyOf(var, op);
    from.push_back(moves ? var : kNoDraft);
  }
  for (size_t i = 0; i < carried.size(); ++i)
    if (from[i] != kNoDraft) Copy(from[i], carried[i], op);
  SwitchBlock(outer);
}

void Lowering::LowerWhile(const Operation& op) {
  if (op.regions.size() != 1) return Problem(op, "has ", op.regions.size(), " regions, not 1");
  const Block& body = op.regions[0];
  if (op.operands.empty() || op.results.size() + 1 != op.operands.size() ||
      body.arguments.size() != op.results.size()) {
    Problem(op, "has ", op.operands.size(), " operands, ", op.results.size(), " results and ",
            body.arguments.size(), " arguments of its block, which do not go together");
    for (const Definition& result : op.results) Bind(result.id, NewBinding(result));
    return;
  }
  std::vector<int> carried;
  for (size_t i = 0; i < op.operands.size(); ++i) carried.push_back(CarryIn(op, i));
  for (size_t i = 0; i < body.arguments.size(); ++i) BindVar(body.arguments[i].id, carried[i + 1]);
  const Yields next = LowerRegion(body);
  if (next.size() != carried.size())
    Problem(op, "carries ", carried.size() - 1, " values; its block yields ", next.size());
  else
    CarryOn(op, body, carried, next);
  Run(op, "Condition", carried[0], body);
  for (size_t i = 0; i < op.results.size(); ++i) BindVar(op.results[i].id, carried[i + 1]);
}

void Lowering::LowerSelectInput(const Operation& op) {
  if (!HasOperands(op, 3, 1)) return;
  const int mask = OperandVar(op, 0), no = OperandVar(op, 1), yes = OperandVar(op, 2);
  const Binding binding = NewBinding(op.results[0]);
  DraftOp& select = Emit("select_input", op);
  In(&select, "Mask", {mask});
  In(&select, "X", {no, yes});
  Out(&select, "Out", {binding.var});
  Bind(op.results[0].id, binding);
}

void Lowering::LowerSelectOutput(const Operation& op) {
  if (!HasOperands(op, 2, 2)) return;
  const int mask = OperandVar(op, 0), x = OperandVar(op, 1);
  const Binding no = NewBinding(op.results[0]), yes = NewBinding(op.results[1]);
  DraftOp& select = Emit("select_output", op);
  In(&select, "Mask", {mask});
  In(&select, "X", {x});
  Out(&select, "Out", {no.var, yes.var});
  Bind(op.results[0].id, no);
  Bind(op.results[1].id, yes);
}

void Lowering::LowerStackCreate(const Operation& op) {
  Stack stack;
  stack.block = block_;
  stack.depth = NewOwn("depth", DType::kI64);
  DraftOp& none = Emit("fill_constant", op);
  Out(&none, "Out", {stack.depth});
  none.attributes = {{"shape", Ints{1}}, {"value", 0.0}, {"dtype", DTypeToProto(DType::kI64)}};
  Binding binding;
  binding.kind = Binding::Kind::kStack;
  binding.stack = stacks_.size();
  stacks_.push_back(stack);
  for (const Definition& result : op.results) Bind(result.id, binding);
}

void Lowering::LowerPush(const Operation& op) {
  const Binding* inlet = Operand(op, 0);
  if (inlet == nullptr || inlet->kind != Binding::Kind::kStack)
    return Problem(op, "operand 0 is no stack");
  const size_t at = inlet->stack;
  for (size_t i = 1; i < op.operands.size(); ++i) {
    if (stacks_[at].arrays.size() < i) {
      const int array = NewOwn("stack", DType::kUnknown);
      draft_.vars[static_cast<size_t>(array)].kind = ir::VarKind::kArray;
      draft_.vars[static_cast<size_t>(array)].block = stacks_[at].block;
      stacks_[at].arrays.push_back(array);
    }
    const int x = OperandVar(op, i);
    DraftOp& write = Emit("write_to_array", op);
    In(&write, "X", {x});
    In(&write, "I", {stacks_[at].depth});
    Out(&write, "Out", {stacks_[at].arrays[i - 1]});
  }
  DraftOp& count = Emit("increment", op);
  In(&count, "X", {stacks_[at].depth});
  Out(&count, "Out", {stacks_[at].depth});
  count.attributes.emplace_back("step", 1.0);
}

void Lowering::LowerPop(const Operation& op) {
  const Binding* outlet = op.operands.empty() ? nullptr : Operand(op, 0);
  if (outlet == nullptr || outlet->kind != Binding::Kind::kStack)
    return Problem(op, "operand 0 is no stack");
  const Stack stack = stacks_[outlet->stack];
  if (op.results.size() > stack.arrays.size())
    Problem(op, "takes ", op.results.size(), " values; ", stack.arrays.size(),
            " are put on its stack");
  DraftOp& count = Emit("increment", op);
  In(&count, "X", {stack.depth});
  Out(&count, "Out", {stack.depth});
  count.attributes.emplace_back("step", -1.0);
  for (size_t i = 0; i < op.results.size(); ++i) {
    const Binding binding = NewBinding(op.results[i]);
    Bind(op.results[i].id, binding);
    if (i >= stack.arrays.size() || binding.kind != Binding::Kind::kVar) continue;
    if (!uses_.used(op.results[i].id)) continue;
    DraftOp& read = Emit("read_from_array", op);
    In(&read, "X", {stack.arrays[i]});
    In(&read, "I", {stack.depth});
    Out(&read, "Out", {binding.var});
  }
}

void Lowering::LowerHasElements(const Operation& op) {
  if (!HasOperands(op, 1, 1)) return;
  const Binding* stack = Operand(op, 0);
  const Binding binding = NewBinding(op.results[0]);
  Bind(op.results[0].id, binding);
  if (stack == nullptr || stack->kind != Binding::Kind::kStack)
    return Problem(op, "operand 0 is no stack");
  const int depth = stacks_[stack->stack].depth, zero = NewOwn("zero", DType::kI64);
  DraftOp& none = Emit("fill_constant", op);
  Out(&none, "Out", {zero});
  none.attributes = {{"shape", Ints{1}}, {"value", 0.0}, {"dtype", DTypeToProto(DType::kI64)}};
  DraftOp& compare = Emit("greater_than", op);
  In(&compare, "X", {depth});
  In(&compare, "Y", {zero});
  Out(&compare, "Out", {binding.var});
}

}  // namespace heddle::pir
