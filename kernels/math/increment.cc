#include "core/shapes.h"
#include "kernels/base/convert.h"
#include "kernels/elementwise/scalar_step.h"

namespace heddle {
namespace {

Status IncrementShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  if (x.is_static() && x.numel() != 1)
    return InvalidArgument("input X must hold one element, but has shape ", x.ToString());
  return SameShape(ctx);
}

template <typename T>
struct Increment {
  static Status Run(KernelContext& ctx) {
    using C = ComputeType<T>;
    const T x = ctx.In("X").data<T>()[0];
    ctx.Out("Out").mutable_data<T>()[0] =
        static_cast<T>(static_cast<C>(x) + ConvertTo<C>(ctx.Float("step")));
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(increment) {
  op.Doc("x + step, for one element.").Input("X").Output("Out").Attr("step", 1.0);
  op.Inplace("X", "Out").InferShape(IncrementShape);
  op.Kernels<Increment, float, double, int32_t, int64_t, float16, bfloat16>();
}

HEDDLE_SCALAR(increment) = {1, [](const KernelContext& attrs, DType dtype, ScalarStep* step) {
                              return MakeAddNumber(attrs.Float("step"), dtype, step);
                            }};
