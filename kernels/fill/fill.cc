// fill: a constant listed in the program, as floats that are converted to the dtype.
#include "kernels/base/shape_arg.h"
#include "kernels/elementwise/convert.h"
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

HEDDLE_EXAMPLES(fill, R"(
example float32
attr value FLOATS [1.5, -2.0, 3.0, 0.0, 7.0, 0.25]
attr shape INTS [2, 3]
attr dtype INT 5
from assign_value -> Out=Out
attr shape INTS [2, 3]
attr dtype INT 5
attr fp32_values FLOATS [1.5, -2.0, 3.0, 0.0, 7.0, 0.25]
out Out float32 [2, 3] 1.5 -2 3 0 7 0.25

example int32
attr value FLOATS [1.0, -2.0, 3.0, 0.0, 7.0, 9.0]
attr shape INTS [2, 3]
attr dtype INT 2
from assign_value -> Out=Out
attr shape INTS [2, 3]
attr dtype INT 2
attr int32_values INTS [1, -2, 3, 0, 7, 9]
out Out int32 [2, 3] 1 -2 3 0 7 9

example int64
attr value FLOATS [1.0, -2.0, 3.0, 0.0, 7.0, 9.0]
attr shape INTS [2, 3]
attr dtype INT 3
from assign_value -> Out=Out
attr shape INTS [2, 3]
attr dtype INT 3
attr int64_values LONGS [1, -2, 3, 0, 7, 9]
out Out int64 [2, 3] 1 -2 3 0 7 9

example bool
attr value FLOATS [1.0, 0.0, 1.0, 0.0, 0.0, 1.0]
attr shape INTS [2, 3]
attr dtype INT 0
from assign_value -> Out=Out
attr shape INTS [2, 3]
attr dtype INT 0
attr bool_values INTS [1, 0, 1, 0, 0, 1]
out Out bool [2, 3] 1 0 1 0 0 1
)")
