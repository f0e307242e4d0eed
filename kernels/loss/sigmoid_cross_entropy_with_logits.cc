#include "core/interrupts.h"
#include "kernels/base/shape_checks.h"

namespace heddle {
namespace {

Status InferSigmoid(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckSameCount(ctx, "X", "Label"));
  if (ctx.HasIn("pos_weight")) HEDDLE_RETURN_IF_ERROR(CheckSameCount(ctx, "X", "pos_weight"));
  return SameShape(ctx);
}

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

Status InferSigmoidGrad(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckSameCount(ctx, "X", "Label"));
  HEDDLE_RETURN_IF_ERROR(CheckSameCount(ctx, "X", "Out@GRAD"));
  if (ctx.HasIn("pos_weight")) HEDDLE_RETURN_IF_ERROR(CheckSameCount(ctx, "X", "pos_weight"));
  return GradLikeInputs(ctx);
}

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
      .InferShape(InferSigmoid)
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
      .InferShape(InferSigmoidGrad)
      .Kernels<SigmoidCeGrad, float, double>();
}

HEDDLE_EXAMPLES(sigmoid_cross_entropy_with_logits, R"(
example float64 3x4, ignore_index -1
attr ignore_index INT -1
in Label float64 [3, 4] 1 -1 -1 1 -1*4 1 -1 -1 1
in X float64 [3, 4] -1.8 4.6 -5.6 2 -6.9 3.3 -0.5 0.8 5.9 -3 -4.3 -8.1
out Out float64 [3, 4] 1.952977610526074 0 0 0.1269280110429726 0*4 0.00273569937853606 0 0
  8.100303493079394

example float32 1x2x1
in Label float32 [1, 2, 1] 0.537 0.457
in X float32 [1, 2, 1] -1.1587 -1.1637
out Out float32 [1, 2, 1] 0.8952172 0.8036139

example float64 3x4
in Label float64 [3, 4] 0.614 0.767 0.154 0.537 0.384 0.46 0.23 0.921 0.844 0.077 0.307 0.69
in X float64 [3, 4] -0 -4.6 -1.2 6.8 -2.3 -3.4 4.5 5.7 2.3 8 3.4 1.1
in pos_weight float64 [3, 4] 0.384 0.538 0.154 0.461 0.615 0.922 0.308 0.231 0.845 0.692 0.768 0.077
out Out float64 [3, 4] 0.266168517335019 3.5335808888059406 0.22534549997005682 3.148913164621174
  0.9419604607277472 1.594267849731726 3.4684027054133666 0.45107162781935434 0.43953591758527877
  7.384232101210044 2.3814122652862966 0.36312482003388824

example float32 4x4
in Label float32 [4, 4] 0.88 0.595 0.709 0.253 0.367 0.197 0.083 0.538 0.481 0.31 0.424 0.14 0.766
  0.937 0.823 0.652
in X float32 [4, 4] 1.68 0.77 1.45 -1.72 -0.13 -0.81 1 0.55 0.32 0.09 -0.36 -1.27 -1.04 1.22 -1.49
  -0.59
out Out float32 [4, 4] 0.3725015 0.692348 0.6326729 0.5998827 0.67796814 0.5275811 1.2302617
  0.7095925 0.71197295 0.7112593 0.68190044 0.42530954 1.0993003 0.33554846 1.4295151 0.8257228
)")

HEDDLE_EXAMPLES(sigmoid_cross_entropy_with_logits_grad, R"(
example float64 1x2x1
in Label float64 [1, 2, 1] 0.606 0.575
in Out@GRAD float64 [1, 2, 1] 0.3 -0
in X float64 [1, 2, 1] -1.1343 -1.129
out X@GRAD float64 [1, 2, 1] -0.10878947268371138 0

example float64 3x4
gradient none: Paddle's operator weights the logarithm alone, its gradient sigmoid(X)
in Label float64 [3, 4] 0.615 0.461 0.077 0.923 0.538 0.231 0.692 0.154 0.385 0.846 0.769 0.308
in Out@GRAD float64 [3, 4] -0.7 -0.8 -0.4 0.4 0.2 0.8 -0.4 -0.4 -0.5 -0.1 0.4 0.4
in X float64 [3, 4] 5.9 -8.1 -0.5 4.6 3.3 -5.6 -3 -1.8 2 -4.3 -6.9 0.8
in pos_weight float64 [3, 4] 0.688 0.764 0.153 0.84 0.458 0.229 0.306 0.382 0.076 0.535 0.611 0.917
out X@GRAD float64 [3, 4] -0.049784287696533876 0.3686145331752464 0.0076945110695535
  -0.03654380542727984 -0.019258320937373476 -0.18412504725042333 0.2709950731230658
  0.039925157283205476 0.1590297110368405 0.08388379989621994 -0.3073539452115711 0.1298826396776083

example float64 3x4, ignore_index -1
attr ignore_index INT -1
in Label float64 [3, 4] 1 -1 -1 1 -1 0 -1 0 -1 0 -1 -1
in Out@GRAD float64 [3, 4] 0.1 -0.5 0.2 -0.8 0.9 0 0.8 -0.8 -0.8 -1 0.6 -1
in X float64 [3, 4] -5.6 2 -3 -4.3 -0.5 -1.8 -8.1 0.8 3.3 4.6 5.9 -6.9
out X@GRAD float64 [3, 4] -0.0996315760100564 0 0 0.7892904657378682 0 0 0 -0.55197958490209 0
  -0.9900481981330957 0 0

example float32 3x4, ignore_index -1
attr ignore_index INT -1
in Label float32 [3, 4] 1 -1 -1 1 -1 0 -1 0 -1 0 -1 -1
in Out@GRAD float32 [3, 4] 0.1 -0.5 0.2 -0.8 0.9 0 0.8 -0.8 -0.8 -1 0.6 -1
in X float32 [3, 4] -5.6 2 -3 -4.3 -0.5 -1.8 -8.1 0.8 3.3 4.6 5.9 -6.9
out X@GRAD float32 [3, 4] -0.09963158 0 0 0.7892905 0 0 0 -0.5519796 0 -0.99004817 0 0
)")
