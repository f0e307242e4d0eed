// Lowers operators that form a program's structure: inputs, outputs, lists, constants.
#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/shapes.h"
#include "formats/pir/lower.h"

namespace heddle::pir {
namespace {

// The most elements of a constant that can become an attribute; larger ones are tensors.
constexpr int64_t kMaxConstant = 4096;

std::string TextOf(const Operation& op, std::string_view attribute) {
  std::string_view text;
  const Attribute* a = op.Find(attribute);
  if (a != nullptr) ReadText(a->value, &text);
  return std::string(text);
}

Numbers NumbersOf(const Operation& op, std::string_view attribute) {
  Numbers numbers;
  const Attribute* a = op.Find(attribute);
  if (a == nullptr || !ReadNumbers(a->value, &numbers)) return {};
  return numbers;
}

int64_t IntegerOf(const Operation& op, std::string_view attribute, int64_t otherwise) {
  const Numbers numbers = NumbersOf(op, attribute);
  return numbers.size() == 1 && numbers.integral ? numbers.integers[0] : otherwise;
}

// The number of elements of a tensor of these dims; -1 if above kMaxConstant or if `dims` is no
// shape.
int64_t SmallCount(const std::vector<int64_t>& dims) {
  int64_t count = 1;
  for (int64_t d : dims) {
    if (d < 0 || (d > 0 && count > kMaxConstant / d)) return -1;
    count *= d;
  }
  return count;
}

}  // namespace

Lowering::Handler Lowering::HandlerOf(std::string_view name) {
  using L = Lowering;
  static constexpr std::pair<std::string_view, Handler> kHandlers[] = {
      {"builtin.combine", &L::LowerCombine},
      {"builtin.set_parameter", &L::LowerStore},
      {"builtin.shadow_output", &L::LowerStore},
      {"builtin.slice", &L::LowerSlice},
      {"builtin.split", &L::LowerSplit},
      {"cf.has_elements", &L::LowerHasElements},
      {"cf.stack_create", &L::LowerStackCreate},
      {"cf.tuple_pop", &L::LowerPop},
      {"cf.tuple_push", &L::LowerPush},
      {"cf.yield", &L::LowerYield},
      {"p", &L::LowerParameter},
      {"pd_op.arange", &L::LowerArange},
      {"pd_op.assign_value", &L::LowerAssignValue},
      {"pd_op.create_array", &L::LowerCreateArray},
      {"pd_op.data", &L::LowerData},
      {"pd_op.feed", &L::LowerData},
      {"pd_op.fetch", &L::LowerFetch},
      {"pd_op.full", &L::LowerFull},
      {"pd_op.full_int_array", &L::LowerIntArray},
      {"pd_op.has_elements", &L::LowerHasElements},
      {"pd_op.if", &L::LowerIf},
      {"pd_op.lp_pool2d", &L::LowerLpPool},
      {"pd_op.median", &L::LowerMedian},
      {"pd_op.select_input", &L::LowerSelectInput},
      {"pd_op.select_output", &L::LowerSelectOutput},
      {"pd_op.shape64", &L::LowerShape64},
      {"pd_op.while", &L::LowerWhile},
  };
  static_assert(std::is_sorted(std::begin(kHandlers), std::end(kHandlers),
                               [](const auto& a, const auto& b) { return a.first < b.first; }));
  const auto* found =
      std::lower_bound(std::begin(kHandlers), std::end(kHandlers), name,
                       [](const auto& entry, std::string_view n) { return entry.first < n; });
  return found != std::end(kHandlers) && found->first == name ? found->second : nullptr;
}

void Lowering::NameVar(int var, const std::string& name, bool persistable) {
  DraftVar& v = draft_.vars[static_cast<size_t>(var)];
  v.name = name;
  v.named = true;
  v.persistable = persistable;
  named_.emplace(name, var);
}

void Lowering::LowerParameter(const Operation& op) {
  if (block_ != 0) Problem(op, "a parameter inside a block");
  const Definition& result = op.results[0];
  if (!op.persistable) return Bind(result.id, {});  // a state without a value
  const std::string name(op.parameter);
  if (named_.count(name) > 0) Problem(op, "a second variable called '", name, "'");
  const Binding binding = NewBinding(result);
  if (binding.kind != Binding::Kind::kVar) return Problem(op, "a parameter that is no tensor");
  NameVar(binding.var, name, true);
  Bind(result.id, binding);
}

// A persistable value is in the scope; the caller feeds all others.
void Lowering::LowerData(const Operation& op) {
  if (!HasOperands(op, 0, 1)) return;
  const std::string name = TextOf(op, "name");
  if (name.empty()) Problem(op, "has no name");
  if (block_ != 0) Problem(op, "an input inside a block");
  if (named_.count(name) > 0) Problem(op, "a second variable called '", name, "'");
  const Binding binding = NewBinding(op.results[0]);
  if (binding.kind != Binding::Kind::kVar) return Problem(op, "an input that is no tensor");
  NameVar(binding.var, name, op.persistable);
  Bind(op.results[0].id, binding);
  if (op.persistable) return;
  draft_.vars[static_cast<size_t>(binding.var)].fed = true;
  const auto next = static_cast<int64_t>(draft_.feeds.size());
  draft_.feeds.emplace_back(binding.var, static_cast<int>(IntegerOf(op, "col", next)));
}

// Whether the variable can take a name without a copy: it has none and is not written to
// afterwards.
bool Lowering::MayBeNamed(const Operation& op, int var) {
  const DraftVar& v = draft_.vars[static_cast<size_t>(var)];
  return !v.named && v.block == 0 && !uses_.rewritten_behind(op.operands[0], op);
}

void Lowering::LowerFetch(const Operation& op) {
  const std::string name = TextOf(op, "name");
  if (block_ != 0) Problem(op, "an output inside a block");
  int var = OperandVar(op, 0);
  for (const Definition& result : op.results) BindVar(result.id, var);
  if (var == kNoDraft) return;
  const auto known = named_.find(name);
  if (known != named_.end() && known->second != var) {
    // The old program wrote this value to a variable that is fed. So does this one, unless the fed
    // value is still read afterwards.
    const DraftVar& other = draft_.vars[static_cast<size_t>(known->second)];
    if (other.fed && !uses_.used_behind(other.id, op)) {
      Copy(var, known->second, op);
      var = known->second;
    }
  } else if (known == named_.end() && !name.empty()) {
    if (!MayBeNamed(op, var)) var = CopyOf(var, op);
    NameVar(var, name, false);
  }
  draft_.fetches.emplace_back(
      var, static_cast<int>(IntegerOf(op, "col", static_cast<int64_t>(draft_.fetches.size()))));
}

void Lowering::LowerStore(const Operation& op) {
  const std::string name =
      TextOf(op, op.name == "builtin.set_parameter" ? "parameter_name" : "output_name");
  const int var = OperandVar(op, 0);
  if (block_ != 0) Problem(op, "stores a variable inside a block");
  if (name.empty()) return Problem(op, "has no name");
  if (var == kNoDraft || draft_.vars[static_cast<size_t>(var)].name == name) return;
  const auto known = named_.find(name);
  if (known != named_.end()) return Copy(var, known->second, op);
  const int stored = MayBeNamed(op, var) ? var : CopyOf(var, op);
  NameVar(stored, name, true);
}

void Lowering::LowerCombine(const Operation& op) {
  if (!HasOperands(op, op.operands.size(), 1)) return;
  Binding binding;
  binding.kind = Binding::Kind::kList;
  for (size_t i = 0; i < op.operands.size(); ++i) {
    const Binding* item = Operand(op, i);
    if (item != nullptr && item->kind != Binding::Kind::kVar)
      Problem(op, "operand ", i, " must be one value");
    binding.list.push_back(item == nullptr ? kNoDraft : item->var);
  }
  Bind(op.results[0].id, std::move(binding));
}

void Lowering::LowerSplit(const Operation& op) {
  const Binding* list = op.operands.size() == 1 ? Operand(op, 0) : nullptr;
  const bool fits = list != nullptr && list->kind == Binding::Kind::kList &&
                    list->list.size() == op.results.size();
  if (!fits) Problem(op, "has ", op.results.size(), " results; its operand is no list of so many");
  const std::vector<int> items = fits ? list->list : std::vector<int>(op.results.size(), kNoDraft);
  for (size_t i = 0; i < items.size(); ++i) BindVar(op.results[i].id, items[i]);
}

void Lowering::LowerSlice(const Operation& op) {
  if (!HasOperands(op, 1, 1)) return;
  const Binding* list = Operand(op, 0);
  const int64_t index = IntegerOf(op, "index", -1);
  int var = kNoDraft;
  if (list == nullptr || list->kind != Binding::Kind::kList || index < 0 ||
      index >= static_cast<int64_t>(list->list.size()))
    Problem(op, "takes element ", index, " of its operand, which is no list of so many");
  else
    var = list->list[static_cast<size_t>(index)];
  BindVar(op.results[0].id, var);
}

void Lowering::LowerFull(const Operation& op) {
  if (!HasOperands(op, 0, 1)) return;
  const Binding binding = NewBinding(op.results[0]);
  Bind(op.results[0].id, binding);
  const Numbers shape = NumbersOf(op, "shape"), value = NumbersOf(op, "value");
  const DType dtype = DTypeFromProto(IntegerOf(op, "dtype", 5));
  if (!shape.integral || value.size() != 1)
    return Problem(op, "needs integers as 'shape' and one number as 'value'");
  if (binding.kind != Binding::Kind::kVar) return Problem(op, "makes no tensor");
  DraftOp& made = Emit("fill_constant", op);
  Out(&made, "Out", {binding.var});
  made.attributes = {
      {"shape", shape.integers}, {"value", value.reals[0]}, {"dtype", DTypeToProto(dtype)}};
  const int64_t count = SmallCount(shape.integers);
  if (count < 0 || uses_.rewritten(op.results[0].id)) return;
  made.optional = true;
  Numbers numbers;
  for (int64_t i = 0; i < count; ++i) numbers.Append(value);
  constants_[binding.var] = Rounded(numbers, dtype);
}

void Lowering::LowerIntArray(const Operation& op) {
  if (!HasOperands(op, 0, 1)) return;
  const Binding binding = NewBinding(op.results[0]);
  Bind(op.results[0].id, binding);
  const Numbers value = NumbersOf(op, "value");
  if (op.Find("value") == nullptr || !value.integral || binding.kind != Binding::Kind::kVar)
    return Problem(op, "needs integers as 'value'");
  DraftOp& made = Emit("assign_value", op);
  Out(&made, "Out", {binding.var});
  made.attributes = {{"shape", Ints{static_cast<int64_t>(value.size())}},
                     {"dtype", IntegerOf(op, "dtype", DTypeToProto(DType::kI64))},
                     {"int64_values", value.integers}};
  if (uses_.rewritten(op.results[0].id)) return;
  made.optional = true;
  constants_[binding.var] = value;
}

void Lowering::LowerAssignValue(const Operation& op) {
  if (!HasOperands(op, 0, 1)) return;
  const Binding binding = NewBinding(op.results[0]);
  Bind(op.results[0].id, binding);
  const Numbers shape = NumbersOf(op, "shape"), values = NumbersOf(op, "values");
  if (!shape.integral || op.Find("values") == nullptr || binding.kind != Binding::Kind::kVar)
    return Problem(op, "needs integers as 'shape' and numbers as 'values'");
  const int64_t dtype = IntegerOf(op, "dtype", 5);
  DraftOp& made = Emit("assign_value", op);
  Out(&made, "Out", {binding.var});
  made.attributes = {{"shape", shape.integers}, {"dtype", dtype}};
  if (values.integral)
    made.attributes.emplace_back("int64_values", values.integers);
  else
    made.attributes.emplace_back("values", values.reals);
  const int64_t count = SmallCount(shape.integers);
  if (count != static_cast<int64_t>(values.size()) || uses_.rewritten(op.results[0].id)) return;
  made.optional = true;
  constants_[binding.var] = Rounded(values, DTypeFromProto(dtype));
}

// heddle's array variable exists from the beginning and is empty: no operator is needed.
void Lowering::LowerCreateArray(const Operation& op) {
  if (HasOperands(op, 0, 1)) Bind(op.results[0].id, NewBinding(op.results[0]));
}

}  // namespace heddle::pir
