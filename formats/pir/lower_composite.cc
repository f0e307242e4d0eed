// Operators of PIR that become several of heddle's.
#include <limits>
#include <utility>

#include "core/shapes.h"
#include "formats/pir/lower.h"

namespace heddle::pir {
namespace {

Numbers NumbersIn(const Operation& op, std::string_view attribute) {
  Numbers numbers;
  const Attribute* a = op.Find(attribute);
  if (a == nullptr || !ReadNumbers(a->value, &numbers)) return {};
  return numbers;
}

}  // namespace

// Adds one unary operator of a chain: a new variable with `type` applied to `x`.
int Lowering::Step(const Operation& op, std::string_view type, int x, DType dtype,
                   DraftOp::Slots<AttrValue> attributes) {
  const int made = NewOwn(type, dtype);
  DraftOp& step = Emit(type, op);
  In(&step, "X", {x});
  Out(&step, "Out", {made});
  step.attributes = std::move(attributes);
  return made;
}

// heddle's range has its operands' dtype, PIR's may have another one.
void Lowering::LowerArange(const Operation& op) {
  if (!HasOperands(op, 3, 1)) return;
  const Numbers number = NumbersIn(op, "dtype");
  const DType dtype =
      number.integral && number.size() == 1 ? DTypeFromProto(number.integers[0]) : DType::kUnknown;
  std::vector<int> bounds;
  for (size_t i = 0; i < 3; ++i) {
    const int x = OperandVar(op, i);
    bounds.push_back(x);
    if (x == kNoDraft || dtype == DType::kUnknown) continue;
    const DType from = draft_.vars[static_cast<size_t>(x)].dtype;
    if (from == dtype) continue;
    bounds.back() = Step(op, "cast", x, dtype,
                         {{"in_dtype", DTypeToProto(from)}, {"out_dtype", DTypeToProto(dtype)}});
  }
  const Binding binding = NewBinding(op.results[0]);
  DraftOp& range = Emit("range", op);
  In(&range, "Start", {bounds[0]});
  In(&range, "End", {bounds[1]});
  In(&range, "Step", {bounds[2]});
  Out(&range, "Out", {binding.var});
  Bind(op.results[0].id, binding);
}

// PIR's shape64 is int64, heddle's shape int32.
void Lowering::LowerShape64(const Operation& op) {
  if (!HasOperands(op, 1, 1)) return;
  const int x = OperandVar(op, 0), narrow = NewOwn("shape", DType::kI32);
  const Binding binding = NewBinding(op.results[0]);
  DraftOp& shape = Emit("shape", op);
  In(&shape, "Input", {x});
  Out(&shape, "Out", {narrow});
  DraftOp& cast = Emit("cast", op);
  In(&cast, "X", {narrow});
  Out(&cast, "Out", {binding.var});
  cast.attributes = {{"in_dtype", DTypeToProto(DType::kI32)},
                     {"out_dtype", DTypeToProto(DType::kI64)}};
  Bind(op.results[0].id, binding);
}

// The median of the elements that are not NaN, replaced by NaN where there is a NaN.
void Lowering::LowerMedian(const Operation& op) {
  if (!HasOperands(op, 1, 2)) return;
  const Numbers axis = NumbersIn(op, "axis"), keep = NumbersIn(op, "keepdim");
  std::string_view mode;
  if (const Attribute* a = op.Find("mode");
      a == nullptr || !ReadText(a->value, &mode) || mode != "avg")
    Problem(op, "has a mode other than \"avg\"");
  if (!axis.integral) Problem(op, "needs integers as 'axis'");
  const bool keepdim = keep.size() == 1 && keep.reals[0] != 0;
  const int x = OperandVar(op, 0);
  const DType dtype = op.results[0].type.dtype;
  const Binding binding = NewBinding(op.results[0]);
  Binding positions;
  positions.missing = true;
  Bind(op.results[0].id, binding);
  Bind(op.results[1].id, positions);
  const int median =
      Step(op, "nanmedian", x, dtype, {{"axis", axis.integers}, {"keepdim", keepdim}});
  const int is_nan = Step(op, "isnan_v2", x, DType::kBool, {});
  const int any =
      Step(op, "reduce_any", is_nan, DType::kBool,
           {{"dim", axis.integers}, {"keep_dim", keepdim}, {"reduce_all", axis.integers.empty()}});
  const int nan = Step(op, "fill_any_like", median, dtype,
                       {{"value", std::numeric_limits<double>::quiet_NaN()}});
  DraftOp& where = Emit("where", op);
  In(&where, "Condition", {any});
  In(&where, "X", {nan});
  In(&where, "Y", {median});
  Out(&where, "Out", {binding.var});
}

// (sum of x^p)^(1/p) over each window.
void Lowering::LowerLpPool(const Operation& op) {
  if (!HasOperands(op, 1, 1)) return;
  const Numbers size = NumbersIn(op, "kernel_size"), order = NumbersIn(op, "norm_type");
  const auto is_set = [&](std::string_view flag) {
    const Numbers n = NumbersIn(op, flag);
    return n.size() == 1 && n.reals[0] != 0;
  };
  if (size.size() != 2 || !size.integral || order.size() != 1 || order.reals[0] == 0 ||
      is_set("global_pooling") || is_set("adaptive"))
    Problem(op,
            "needs two integers as 'kernel_size' and a 'norm_type', and no global or adaptive "
            "windows");
  const int x = OperandVar(op, 0);
  const Binding binding = NewBinding(op.results[0]);
  Bind(op.results[0].id, binding);
  if (!builder_.ok()) return;
  const DType dtype = op.results[0].type.dtype;
  const double p = order.reals[0];
  const int power = Step(op, "pow", x, dtype, {{"factor", p}});
  DraftOp::Slots<AttrValue> pool = {
      {"ksize", size.integers}, {"pooling_type", std::string("avg")}, {"exclusive", false}};
  for (const auto& [name, like] : {std::pair<std::string_view, AttrValue>{"strides", Ints{}},
                                   {"paddings", Ints{}},
                                   {"ceil_mode", false},
                                   {"data_format", std::string()},
                                   {"padding_algorithm", std::string()}})
    if (const Attribute* a = op.Find(name)) {
      auto value = ToAttr(*a, like);
      if (!value.ok()) return Problem(op, value.status().message());
      pool.emplace_back(name, *std::move(value));
    }
  const int mean = Step(op, "pool2d", power, dtype, std::move(pool));
  const int sum = Step(op, "scale", mean, dtype, {{"scale", size.reals[0] * size.reals[1]}});
  DraftOp& root = Emit("pow", op);
  In(&root, "X", {sum});
  Out(&root, "Out", {binding.var});
  root.attributes = {{"factor", 1 / p}};
}

}  // namespace heddle::pir
