// fake_dequantize_max_abs: rounded values, still stored as floats, times a scale.
#include "kernels/base/shape_checks.h"

namespace heddle {
namespace {

Status InferDequantize(ShapeContext& ctx) {
  const Shape& scale = ctx.InShape("Scale");
  if (scale.is_static() && scale.numel() != 1)
    return InvalidArgument("Scale must hold one value, not ", scale.ToString());
  if (ctx.InDType("Scale") != ctx.InDType("X"))
    return InvalidArgument("Scale must have the dtype of X");
  return SameShape(ctx);
}

template <typename T>
struct DequantizeMaxAbs {
  static Status Run(KernelContext& ctx) {
    const Tensor& in = ctx.In("X");
    const T* x = in.data<T>();
    T* out = ctx.Out("Out").template mutable_data<T>();
    const T factor = *ctx.In("Scale").template data<T>() / static_cast<T>(ctx.Float("max_range"));
    ForEachIndex(ctx, in.numel(), [=](int64_t i) { out[i] = factor * x[i]; });
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(fake_dequantize_max_abs) {
  op.Doc("X scale / max_range")
      .Input("X")
      .Input("Scale")
      .Output("Out")
      .Attr("max_range", 127.0)
      .Inplace("X", "Out")
      .InferShape(InferDequantize)
      .Kernels<DequantizeMaxAbs, float, double>();
}
