#include "core/interrupts.h"
#include "kernels/base/shape_checks.h"

namespace heddle {
namespace {

template <typename T>
struct Operands {
  const T *x, *label, *weight;
  int64_t n;
  int ignore;

  explicit Operands(KernelContext& ctx)
      : x(ctx.In("X").data<T>()),
        label(ctx.In("Label").data<T>()),
        weight(nullptr),
        n(ctx.In("X").numel()),
        ignore(static_cast<int>(ctx.Int("ignore_index"))) {
    if (const Tensor* w = ctx.InOpt("pos_weight")) weight = w->data<T>();
  }
  bool Ignored(int64_t i) const { return static_cast<int>(label[i]) == ignore; }
  // Divisor of `normalize`.
  T Count() const {
    int64_t count = 0;
    for (const auto part : Stretches(n))
      for (int64_t i = part.begin; i < part.end; ++i) count += !Ignored(i);
    return std::max(static_cast<T>(count), T(1e-5));
  }
};

template <typename T>
struct SigmoidCe {
  static Status Run(KernelContext& ctx) {
    const Operands<T> o(ctx);
    T* out = ctx.Out("Out").mutable_data<T>();
    const T factor = ctx.Bool("normalize") ? T(1) / o.Count() : T(1);
    ForEachIndex(ctx, o.n, [=](int64_t i) {
      // The weight is on the logarithm alone, as in Paddle's CPU kernel.
      const T x = o.x[i], w = o.weight ? o.weight[i] : T(1);
      const T loss = std::max(x, T(0)) - x * o.label[i] + w * std::log1p(std::exp(-std::abs(x)));
      out[i] = o.Ignored(i) ? T(0) : factor * loss;
    });
    return Status::Ok();
  }
};

template <typename T>
struct SigmoidCeGrad {
  static Status Run(KernelContext& ctx) {
    const Operands<T> o(ctx);
    const T* dout = ctx.In("Out@GRAD").data<T>();
    T* dx = ctx.Out("X@GRAD").mutable_data<T>();
    const T factor = ctx.Bool("normalize") ? T(1) / o.Count() : T(1);
    ForEachIndex(ctx, o.n, [=](int64_t i) {
      const T w = o.weight ? o.weight[i] : T(1);
      const T slope = SigmoidOf(o.x[i]) * w - o.label[i];
      dx[i] = o.Ignored(i) ? T(0) : factor * dout[i] * slope;
    });
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(sigmoid_cross_entropy_with_logits) {
  op.Doc("binary cross entropy of logits")
      .Input("X")
      .Input("Label")
      .Input("pos_weight", kOptional)
      .Output("Out")
      .Attr("normalize", false)
      .Attr("ignore_index", -100)
      .Inplace("X", "Out")
      .Contract("X: float; Label, pos_weight: as X count X; Out: like X")
      .Kernels<SigmoidCe, float, double>();
}

HEDDLE_OP(sigmoid_cross_entropy_with_logits_grad) {
  op.Input("X")
      .Input("Label")
      .Input("pos_weight", kOptional)
      .Input("Out@GRAD")
      .Output("X@GRAD")
      .Attr("normalize", false)
      .Attr("ignore_index", -100)
      .Inplace("Out@GRAD", "X@GRAD")
      .Contract("X: float; Label, pos_weight, Out@GRAD: as X count X; X@GRAD: like X")
      .Kernels<SigmoidCeGrad, float, double>();
}
