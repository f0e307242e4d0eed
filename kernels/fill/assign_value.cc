// assign_value: a constant listed in the program.
#include "kernels/base/shape_arg.h"
#include "kernels/elementwise/convert.h"
#include "kernels/fill/store_values.h"

namespace heddle {
namespace {

// Calls fn(list) with the one list of values that is not empty; older and newer programs name it
// differently, and its type need not be that of the tensor.
template <typename Fn>
bool VisitValues(const OpContext& ctx, Fn&& fn) {
  for (const Key& k :
       {Key("bool_values"), Key("int32_values"), Key("int64_values"), Key("int8_values")})
    if (const Ints& v = ctx.IntList(k); !v.empty()) return fn(v), true;
  for (const Key& k : {Key("fp32_values"), Key("fp64_values"), Key("values")})
    if (const Floats& v = ctx.Attr<Floats>(k); !v.empty()) return fn(v), true;
  return false;
}

Status AssignValueShape(ShapeContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const DType dtype, CheckedDType(ctx.Int("dtype")));
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, CheckedShape(ctx.IntList("shape"), "attribute shape"));
  int64_t count = 0;
  VisitValues(ctx, [&](const auto& v) { count = static_cast<int64_t>(v.size()); });
  if (count != shape.numel())
    return InvalidArgument("shape ", shape.ToString(), " needs ", shape.numel(), " values, but ",
                           count, " are given");
  ctx.SetOut("Out", shape, dtype);
  return Status::Ok();
}

Status RunAssignValue(KernelContext& ctx) {
  Tensor& out = ctx.Out("Out");
  VisitAnyDType(out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    VisitValues(ctx, [&](const auto& v) { StoreValues<T>(v, out); });
  });
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(assign_value) {
  op.Doc("The listed values in the given shape.").Output("Out");
  op.Attr("shape", Ints{}).Attr("dtype", 5).Attr("bool_values", Ints{}).Attr("int8_values", Ints{});
  op.Attr("int32_values", Ints{}).Attr("int64_values", Ints{}).Attr("fp32_values", Floats{});
  op.Attr("fp64_values", Floats{}).Attr("values", Floats{});
  op.InferShape(AssignValueShape).AnyKernel(RunAssignValue);
}

HEDDLE_EXAMPLES(assign_value, R"(
example bool_values , dtype 5, fp64_values , int32_values , int64_values , shape 2 5
attr bool_values INTS []
attr dtype INT 5
attr fp32_values FLOATS [-84.73834, 55.983757, -12.318153, 44.693035, 95.5979, 7.699174, 0.22409274,
  -85.589775, -46.312202, -0.023499835]
attr fp64_values FLOAT64S []
attr int32_values INTS []
attr int64_values LONGS []
attr shape INTS [2, 5]
out Out float32 [2, 5] -84.73834 55.983757 -12.318153 44.693035 95.5979 7.699174 0.22409274
  -85.589775 -46.312202 -0.023499835

example bool_values , dtype 2, fp32_values , fp64_values , int32_values -3 -1 9
attr bool_values INTS []
attr dtype INT 2
attr fp32_values FLOATS []
attr fp64_values FLOAT64S []
attr int32_values INTS [-3, -1, 9]
attr int64_values LONGS []
attr shape INTS [3]
out Out int32 [3] -3 -1 9

example dtype 0, fp32_values , fp64_values , int32_values , int64_values , shape 2 5
attr bool_values INTS [0, 1, 1, 0, 0, 0, 1, 1, 0, 1]
attr dtype INT 0
attr fp32_values FLOATS []
attr fp64_values FLOAT64S []
attr int32_values INTS []
attr int64_values LONGS []
attr shape INTS [2, 5]
out Out bool [2, 5] 0 1 1 0 0 0 1 1 0 1

example bool_values , dtype 5, fp64_values , int32_values , int64_values , shape 5
attr bool_values INTS []
attr dtype INT 5
attr fp32_values FLOATS [-0.10421295, 0.817191, -0.4127717, -0.42444932, -0.73994285]
attr fp64_values FLOAT64S []
attr int32_values INTS []
attr int64_values LONGS []
attr shape INTS [5]
out Out float32 [5] -0.10421295 0.817191 -0.4127717 -0.42444932 -0.73994285
)")
