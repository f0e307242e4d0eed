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
