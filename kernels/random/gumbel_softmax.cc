// gumbel_softmax: differentiable samples of categories.
#include <cmath>
#include <random>

#include "core/interrupts.h"
#include "kernels/base/shape_checks.h"

namespace heddle {
namespace {

// --- gumbel_softmax ---

// Calls fn(first element, step) for each line along the axis.
template <typename Fn>
Result<int64_t> ForEachLine(const OpContext& ctx, const Shape& shape, Fn fn) {
  HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(ctx.Int("axis"), shape.rank()));
  const AxisSplit s = SplitAt(shape, axis);
  for (const int64_t o : Watched(s.outer))
    for (int64_t i = 0; i < s.inner; ++i) fn(o * s.n * s.inner + i, s.inner, s.n);
  return s.n;
}

template <typename T>
struct GumbelSoftmax {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    T* out = ctx.Out("Out").template mutable_data<T>();
    const T temperature = static_cast<T>(ctx.Float("temperature")), tiny = static_cast<T>(1e-20);
    std::uniform_real_distribution<T> uniform(0, 1);
    for (const int64_t i : Watched(x.numel())) {
      const T noise = -std::log(tiny - std::log(uniform(ctx.random()) + tiny));
      out[i] = (x.data<T>()[i] + noise) / temperature;
    }
    const bool hard = ctx.Bool("hard");
    return ForEachLine(
               ctx, x.shape(),
               [&](int64_t first, int64_t step, int64_t n) { Softmax(out + first, step, n, hard); })
        .status();
  }
  static void Softmax(T* x, int64_t step, int64_t n, bool hard) {
    int64_t best = 0;
    T sum = 0;
    for (const auto part : Stretches(Stretches::Range{1, n}))
      for (int64_t i = part.begin; i < part.end; ++i)
        if (x[i * step] > x[best * step]) best = i;
    const T max = n > 0 ? x[best * step] : T(0);
    for (const auto part : Stretches(n))
      for (int64_t i = part.begin; i < part.end; ++i)
        sum += x[i * step] = std::exp(x[i * step] - max);
    for (const auto part : Stretches(n))
      for (int64_t i = part.begin; i < part.end; ++i)
        x[i * step] = hard ? (i == best ? T(1) : T(0)) : x[i * step] / sum;
  }
};

template <typename T>
struct GumbelSoftmaxGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& out = ctx.In("Out");
    const T *y = out.data<T>(), *d = ctx.In("Out@GRAD").template data<T>();
    T* dx = ctx.Out("X@GRAD").template mutable_data<T>();
    const T temperature = static_cast<T>(ctx.Float("temperature"));
    return ForEachLine(ctx, out.shape(),
                       [&](int64_t first, int64_t step, int64_t n) {
                         T dot = 0;
                         for (int64_t i = first; i < first + n * step; i += step)
                           dot += d[i] * y[i];
                         for (int64_t i = first; i < first + n * step; i += step)
                           dx[i] = (d[i] - dot) * y[i] / temperature;
                       })
        .status();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(gumbel_softmax) {
  op.Doc("softmax of X with Gumbel noise; hard: 1 for the largest element, else 0");
  op.Input("X").Output("Out").Attr("temperature", 1.0).Attr("hard", false).Attr("axis", -1);
  op.Traits(kRandom)
      .Contract("X: float; axis: axis X; temperature: >0; Out: like X")
      .Kernels<GumbelSoftmax, float, double>();
}

HEDDLE_OP(gumbel_softmax_grad) {
  op.Input("Out").Input("Out@GRAD").Output("X@GRAD").Attr("temperature", 1.0);
  op.Attr("hard", false).Attr("axis", -1);
  op.Contract("Out: float; Out@GRAD: as Out count Out; axis: axis Out; X@GRAD: like Out");
  op.Kernels<GumbelSoftmaxGrad, float, double>();
}
