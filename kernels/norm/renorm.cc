// renorm: slices along an axis whose p-norm is above max_norm are scaled down to it.
#include <cmath>
#include <vector>

#include "core/error.h"
#include "core/interrupts.h"
#include "kernels/base/axis_lines.h"
#include "kernels/base/check.h"

namespace heddle {
namespace {

// Sum of |x|^p of every slice.
template <typename T>
std::vector<T> PowerSums(const AxisLines& s, const T* x, T p) {
  std::vector<T> sums(static_cast<size_t>(s.n), T(0));
  for (int64_t o = 0; o < s.outer; ++o)
    for (const int64_t i : Watched(s.n))
      for (const int64_t k : Watched(s.inner))
        sums[static_cast<size_t>(i)] += std::pow(std::fabs(x[(o * s.n + i) * s.inner + k]), p);
  return sums;
}

template <typename T>
struct Renorm {
  static Status Run(KernelContext& ctx) {
    const Tensor& xt = ctx.In("X");
    HEDDLE_ASSIGN_OR_RETURN(const AxisLines s, AxisLines::At(xt.shape(), ctx.Int("axis")));
    const T p = static_cast<T>(ctx.Float("p")), max = static_cast<T>(ctx.Float("max_norm"));
    const T* x = xt.data<T>();
    T* out = ctx.Out("Out").template mutable_data<T>();
    std::vector<T> scale = PowerSums(s, x, p);
    for (T& v : scale) {
      LookForInterrupt();
      const T norm = std::pow(v, T(1) / p);
      v = norm > max ? max / norm : T(1);
    }
    for (const auto part : Stretches(xt.numel()))
      for (int64_t i = part.begin; i < part.end; ++i)
        out[i] = x[i] * scale[static_cast<size_t>(i / s.inner % s.n)];
    return Status::Ok();
  }
};

template <typename T>
struct RenormGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& xt = ctx.In("X");
    const Tensor& dt = ctx.In("Out@GRAD");
    HEDDLE_ASSIGN_OR_RETURN(const AxisLines s, AxisLines::At(xt.shape(), ctx.Int("axis")));
    HEDDLE_RETURN_IF_ERROR(CheckDType(kDTypeOf<T>, {&dt}));
    if (dt.numel() != xt.numel())
      return InvalidArgument("Out@GRAD has shape ", dt.shape().ToString(), ", X has ",
                             xt.shape().ToString());
    const T p = static_cast<T>(ctx.Float("p")), max = static_cast<T>(ctx.Float("max_norm"));
    const T* x = xt.data<T>();
    const T* dout = dt.data<T>();
    T* dx = ctx.Out("X@GRAD").template mutable_data<T>();
    const std::vector<T> sums = PowerSums(s, x, p);
    std::vector<T> dots(sums.size(), T(0));
    for (const auto part : Stretches(xt.numel()))
      for (int64_t i = part.begin; i < part.end; ++i)
        dots[static_cast<size_t>(i / s.inner % s.n)] += x[i] * dout[i];
    for (const auto part : Stretches(xt.numel()))
      for (int64_t i = part.begin; i < part.end; ++i) {
        const auto slice = static_cast<size_t>(i / s.inner % s.n);
        const T norm = std::pow(sums[slice], T(1) / p);
        dx[i] = dout[i];
        if (!(norm > max)) continue;
        const T inverse = T(1) / norm;
        const T sign = static_cast<T>((x[i] > 0) - (x[i] < 0));
        const T dnorm =
            std::pow(sums[slice], T(1) / p - 1) * std::pow(std::fabs(x[i]), p - 1) * sign;
        dx[i] = max * (dout[i] * inverse - dots[slice] * inverse * inverse * dnorm);
      }
    return Status::Ok();
  }
};

void DefineAttrs(OpDef& op) { op.Attr("p", 2.0).Attr("axis", 0).Attr("max_norm", 1.0); }

}  // namespace
}  // namespace heddle

HEDDLE_OP(renorm) {
  op.Doc("slices along an axis scaled down to max_norm").Input("X").Output("Out");
  DefineAttrs(op);
  op.InferShape(&SameShape).Kernels<Renorm, float, double>();
}

HEDDLE_OP(renorm_grad) {
  op.Doc("gradient of renorm").Input("X").Input("Out@GRAD").Output("X@GRAD");
  DefineAttrs(op);
  op.InferShape(&GradLikeInputs).Kernels<RenormGrad, float, double>();
}
