// check_finite_and_unscale: divides gradients by the loss scale and reports overflow.
#include "core/interrupts.h"
#include "kernels/optimizer/optimizer.h"

namespace heddle {
namespace {

Status InferCheck(ShapeContext& ctx) {
  const Shape& scale = ctx.InShape("Scale");
  if (scale.is_static() && scale.numel() != 1)
    return InvalidArgument("Scale must hold one value, not ", scale.ToString());
  if (ctx.InCount("X") != ctx.OutCount("Out")) return InvalidArgument("Out must be as many as X");
  for (int i = 0; i < ctx.InCount("X"); ++i)
    ctx.SetOut("Out", ctx.InShape("X", i), ctx.InDType("X", i), i);
  ctx.SetOut("FoundInfinite", Shape{1}, DType::kBool);
  return Status::Ok();
}

template <typename T>
struct CheckFinite {
  static Status Run(KernelContext& ctx) {
    HEDDLE_ASSIGN_OR_RETURN(const double scale, ScalarOf(ctx, "Scale"));
    T factor = T(1) / static_cast<T>(scale);
    bool found = false;
    for (int i = 0, count = ctx.InCount("X"); i < count; ++i) {
      const Tensor& in = ctx.In("X", i);
      if (in.dtype() != kDTypeOf<T>) return InvalidArgument("all X must have the same dtype");
      const T* x = in.data<T>();
      T* out = ctx.Out("Out", i).template mutable_data<T>();
      for (const auto some : Stretches(in.numel()))
        for (int64_t k = some.begin; k < some.end; ++k) found |= !std::isfinite(x[k]);
      if (found) factor = T(0);  // the step is to be skipped: nothing usable comes out
      for (const auto part : Stretches(in.numel()))
        for (int64_t k = part.begin; k < part.end; ++k) out[k] = x[k] * factor;
    }
    *ctx.Out("FoundInfinite").mutable_data<bool>() = found;
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(check_finite_and_unscale) {
  op.Doc("divides gradients by the loss scale and reports infinities and NaN")
      .Input("X", kList)
      .Input("Scale")
      .Output("Out", kList)
      .Output("FoundInfinite")
      .InferShape(InferCheck)
      .Kernels<CheckFinite, float, double>();
}

HEDDLE_EXAMPLES(check_finite_and_unscale, R"(
example float32 4x1x4
in Scale float32 [1] 4
in X float32 [4, 1, 4] -0.24 -0.56 0.64 0.2 -0.13 0.86 -0.34 0.31 0.09 0.53 -0.67 0.42 -0.78 0.75
  -0.02 -0.45
out FoundInfinite bool [1] 0
out Out float32 [4, 1, 4] -0.06 -0.14 0.16 0.05 -0.0325 0.215 -0.085 0.0775 0.0225 0.1325 -0.1675
  0.105 -0.195 0.1875 -0.005 -0.1125

example float32 3x2x2x4
in Scale float32 [1] 4
in X float32 [3, 2, 2, 4] -0.35 0.59 0.75 -0.43 -0.3 -0.18 0.51 -0.96 0.71 0.79 -0.51 0.3 0.87 0.1
  0.26 0.63 0.39 0.43 0.95 -0.47 -0.71 -0.79 -0.55 -0.06 -0.63 0.35 -0.75 0.67 0.22 0.02 0.47 -0.83
  0.18 0.14 0.55 -0.59 -0.91 -0.1 -0.26 -0.14 0.83 -0.87 -0.39 0.91 0.06 -0.02 -0.67 -0.22
in X float32 [3] 0.41 0.6 -0.12
out FoundInfinite bool [1] 0
out Out float32 [3, 2, 2, 4] -0.0875 0.1475 0.1875 -0.1075 -0.075 -0.045 0.1275 -0.24 0.1775 0.1975
  -0.1275 0.075 0.2175 0.025 0.065 0.1575 0.0975 0.1075 0.2375 -0.1175 -0.1775 -0.1975 -0.1375
  -0.015 -0.1575 0.0875 -0.1875 0.1675 0.055 0.005 0.1175 -0.2075 0.045 0.035 0.1375 -0.1475 -0.2275
  -0.025 -0.065 -0.035 0.2075 -0.2175 -0.0975 0.2275 0.015 -0.005 -0.1675 -0.055
out Out float32 [3] 0.1025 0.15 -0.03

example float64 4x1x4
in Scale float64 [1] 4
in X float64 [4, 1, 4] -0.24 -0.56 0.64 0.2 -0.13 0.86 -0.34 0.31 0.09 0.53 -0.67 0.42 -0.78 0.75
  -0.02 -0.45
out FoundInfinite bool [1] 0
out Out float64 [4, 1, 4] -0.06 -0.14 0.16 0.05 -0.0325 0.215 -0.085 0.0775 0.0225 0.1325 -0.1675
  0.105 -0.195 0.1875 -0.005 -0.1125
)")
