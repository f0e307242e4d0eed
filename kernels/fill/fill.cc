// fill: a constant listed in the program, as floats that are converted to the dtype.
#include "kernels/base/convert.h"
#include "kernels/base/shape_arg.h"
#include "kernels/fill/store_values.h"

namespace heddle {
namespace {

Status FillShape(ShapeContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const DType dtype, CheckedDType(ctx.Int("dtype")));
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, CheckedShape(ctx.IntList("shape"), "attribute shape"));
  const auto count = static_cast<int64_t>(ctx.Attr<Floats>("value").size());
  if (count != shape.numel())
    return InvalidArgument("shape ", shape.ToString(), " needs ", shape.numel(), " values, but ",
                           count, " are given");
  ctx.SetOut("Out", shape, dtype);
  return Status::Ok();
}

Status RunFill(KernelContext& ctx) {
  Tensor& out = ctx.Out("Out");
  VisitAnyDType(out.dtype(), [&](auto tag) {
    StoreValues<typename decltype(tag)::type>(ctx.Attr<Floats>("value"), out);
  });
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(fill) {
  op.Doc("The listed values in the given shape.").Output("Out");
  op.Attr("value", Floats{}).Attr("shape", Ints{}).Attr("dtype", 5);
  op.InferShape(FillShape).AnyKernel(RunFill);
}
