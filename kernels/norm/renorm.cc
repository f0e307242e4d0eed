// renorm: slices along an axis whose p-norm is above max_norm are scaled down to it.
#include <cmath>
#include <vector>

#include "core/error.h"
#include "core/interrupts.h"
#include "kernels/base/check.h"
#include "kernels/reduce/axis_lines.h"

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

HEDDLE_EXAMPLES(renorm, R"(
example float64 2x2x3, axis 2, max_norm 2.05, p 1
attr axis INT 2
attr max_norm FLOAT 2.05
attr p FLOAT 1.0
in X float64 [2, 2, 3] -5.3 1 0.1 -2.6 -6.2 -3.5 -1.7 2.8 -7.1 1.9 -0.8 -4.4
out Out float64 [2, 2, 3] -0.9447825867196787 0.18981481039965592 0.013576158624611154
  -0.46347825008889904 -1.1768518244778667 -0.47516555186139037 -0.30304347121197245
  0.5314814691190365 -0.9639072623473919 0.3386956442957339 -0.15185184831972476 -0.5973509794828908

example float32 2x2x3, axis 2, max_norm 2.05, p 1
attr axis INT 2
attr max_norm FLOAT 2.05
attr p FLOAT 1.0
in X float32 [2, 2, 3] -5.3 1 0.1 -2.6 -6.2 -3.5 -1.7 2.8 -7.1 1.9 -0.8 -4.4
out Out float32 [2, 2, 3] -0.9447826 0.1898148 0.013576159 -0.46347824 -1.1768517 -0.47516555
  -0.30304348 0.53148144 -0.96390724 0.33869565 -0.15185185 -0.597351
)")

HEDDLE_EXAMPLES(renorm_grad, R"(
example axis 0
attr axis INT 0
attr max_norm FLOAT 1.0
attr p FLOAT 2.0
in Out@GRAD float64 [2, 3] -0.6 0.6 0.7 -0.3 -0.5 0.6
in X float64 [2, 3] -1.27 -1.5 1.93 0.69 -1.72 -1.7
out X@GRAD float64 [2, 3] -0.1441138319216328 0.30486967119863423 0.14211395868263094
  -0.10336992876924969 -0.23850618634093684 0.1993561115621347

example axis 1, p 1
attr axis INT 1
attr max_norm FLOAT 1.5
attr p FLOAT 1.0
in Out@GRAD float64 [2, 3] -0.6 0.6 0.7 -0.3 -0.5 0.6
in X float64 [2, 3] 1 0.96 -1.72 -1.71 -0.35 1.2
out X@GRAD float64 [2, 3] -0.31433395514766954 0.6 0.2744417339088009 -0.18382102640214593 -0.5
  0.3933664852692813
)")
