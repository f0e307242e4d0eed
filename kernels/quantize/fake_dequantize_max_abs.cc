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

HEDDLE_EXAMPLES(fake_dequantize_max_abs, R"(
example float64 4x3, max_range 127
attr max_range FLOAT 127.0
in Scale float64 [] 3.8
in X float64 [4, 3] 52 -40 -56 65 -33 -35 -126 62 1 -38 -82 -87
out Out float64 [4, 3] 1.5559055118110237 -1.1968503937007875 -1.6755905511811022 1.9448818897637796
  -0.9874015748031495 -1.047244094488189 -3.77007874015748 1.8551181102362204 0.029921259842519685
  -1.137007874015748 -2.4535433070866137 -2.6031496062992123

example float32 4x3, max_range 127
attr max_range FLOAT 127.0
in Scale float32 [] 3.8
in X float32 [4, 3] 52 -40 -56 65 -33 -35 -126 62 1 -38 -82 -87
out Out float32 [4, 3] 1.5559055 -1.1968504 -1.6755906 1.9448819 -0.9874016 -1.0472441 -3.7700787
  1.855118 0.02992126 -1.1370078 -2.4535434 -2.6031497
)")
