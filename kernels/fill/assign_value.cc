// assign_value: a constant listed in the program.
#include "kernels/base/convert.h"
#include "kernels/base/shape_arg.h"
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
