#include "core/interrupts.h"
#include "kernels/base/shape_checks.h"

namespace heddle {
namespace {

Status InferKldiv(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckSameCount(ctx, "X", "Target"));
  HEDDLE_ASSIGN_OR_RETURN(const Reduction how, ReductionOf(ctx.Str("reduction")));
  ctx.SetOut("Loss", how == Reduction::kNone ? ctx.InShape("X") : Shape{}, ctx.InDType("X"));
  return Status::Ok();
}

int64_t Divisor(Reduction how, const Tensor& x) {
  if (how == Reduction::kMean) return x.numel();  // of nothing: not a number
  if (how == Reduction::kBatchMean) return x.rank() > 0 ? std::max<int64_t>(1, x.dim(0)) : 1;
  return 1;
}

template <typename T>
struct KlDiv {
  static Status Run(KernelContext& ctx) {
    const Tensor& in = ctx.In("X");
    HEDDLE_ASSIGN_OR_RETURN(const Reduction how, ReductionOf(ctx.Str("reduction")));
    const T* x = in.data<T>();
    const T* target = ctx.In("Target").data<T>();
    T* out = ctx.Out("Loss").mutable_data<T>();
    const auto term = [=](int64_t i) {
      return target[i] > T(0) ? target[i] * (std::log(target[i]) - x[i]) : T(0);
    };
    if (how == Reduction::kNone) {
      ForEachIndex(ctx, in.numel(), [=](int64_t i) { out[i] = term(i); });
      return Status::Ok();
    }
    T sum = 0;
    for (const auto part : Stretches(in.numel()))
      for (int64_t i = part.begin; i < part.end; ++i) sum += term(i);
    *out = sum / static_cast<T>(Divisor(how, in));
    return Status::Ok();
  }
};

Status InferKldivGrad(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckSameCount(ctx, "X", "Target"));
  if (ctx.Str("reduction") == "none") HEDDLE_RETURN_IF_ERROR(CheckSameCount(ctx, "X", "Loss@GRAD"));
  return GradLikeInputs(ctx);
}

template <typename T>
struct KlDivGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& in = ctx.In("X");
    HEDDLE_ASSIGN_OR_RETURN(const Reduction how, ReductionOf(ctx.Str("reduction")));
    const T* target = ctx.In("Target").data<T>();
    const T* dout = ctx.In("Loss@GRAD").data<T>();
    T* dx = ctx.Out("X@GRAD").mutable_data<T>();
    const bool each = how == Reduction::kNone;
    const T factor = T(1) / static_cast<T>(Divisor(how, in));
    ForEachIndex(ctx, in.numel(), [=](int64_t i) {
      dx[i] = target[i] > T(0) ? -target[i] * dout[each ? i : 0] * factor : T(0);
    });
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(kldiv_loss) {
  op.Doc("Kullback-Leibler divergence of log-probabilities from a target distribution")
      .Input("X")
      .Input("Target")
      .Output("Loss")
      .Attr("reduction", "mean")
      .InferShape(InferKldiv)
      .Kernels<KlDiv, float, double>();
}

HEDDLE_OP(kldiv_loss_grad) {
  op.Input("X", kNoBuffer)
      .Input("Target")
      .Input("Loss@GRAD")
      .Output("X@GRAD")
      .Attr("reduction", "mean")
      .InferShape(InferKldivGrad)
      .Kernels<KlDivGrad, float, double>();
}

HEDDLE_EXAMPLES(kldiv_loss, R"(
example float32 3x2, reduction none
attr reduction STRING "none"
in Target float32 [3, 2] 0.839 0.447 0.761 0.525 0.682 0.604
in X float32 [3, 2] -1.21 -0.71 -0.46 -1.71 -0.96 -1.46
out Loss float32 [3, 2] 0.86790806 -0.042552937 0.1422142 0.55946255 0.39370108 0.57731456

example float64 4x3, reduction sum
attr reduction STRING "sum"
in Target float64 [4, 3] 3.3 1.8 0.4 -4 -1.1 6.2 7.7 -8.5 -2.6 -7 4.8 -5.5
in X float64 [4, 3] 0.8 3.8 -3.8 -2.3 8.4 -8.4 -6.8 -0.7 5.3 2.3 -5.3 6.9
out Loss float64 [] 161.11040239895533

example float32 3x2x1
in Target float32 [3, 2, 1] 0.628 0.802 0.715 0.889 0.454 0.541
in X float32 [3, 2, 1] -1.51 -0.94 -1.32 -0.75 -1.7 -1.13
out Loss float32 [] 0.5319008

example float64 4x3x3, reduction batchmean
attr reduction STRING "batchmean"
in Target float64 [4, 3, 3] 8.2 -1.1 2 6.1 -7.9 -5.8 5.1 -0.1 3 -0.6 6.6 3.5 -6.8 0.4 -8.9 7.6 4
  -5.3 -2.2 -7.3 5.6 -4.8 8.7 4.5 -8.4 -1.7 0.9 -2.7 -9.4 -6.3 7.1 2.5 -4.2 1.4 -3.2 -3.7
in X float64 [4, 3, 3] -6.7 -6.1 -5.6 3.5 -0.8 -8.8 7.2 -8.3 5.1 7.8 -3.5 3 4.6 0.8 1.4 -1.9 4 5.6
  0.3 -2.9 -9.4 -7.7 -1.3 -5.1 -7.2 -0.3 6.2 8.9 6.7 -4.5 8.3 2.4 9.4 -2.4 -4 1.9
out Loss float64 [] 38.44200636828633

example the mean of nothing
attr reduction STRING "mean"
in X float32 [0, 2]
in Target float32 [0, 2]
out Loss float32 [] nan
)")

HEDDLE_EXAMPLES(kldiv_loss_grad, R"(
example float64 3x2, reduction none
attr reduction STRING "none"
in Loss@GRAD float64 [3, 2] 0.2 -0.7 -0.1 0.5 -0.4 -0.7
in Target float64 [3, 2] 0.604 0.761 0.682 0.839 0.447 0.525
in X float64 [3, 2] -1.46 -0.71 -1.21 -0.46 -1.71 -0.96
out X@GRAD float64 [3, 2] -0.1208 0.5327 0.06820000000000001 -0.4195 0.17880000000000001 0.3675

example float64 4x3x3, reduction batchmean
attr reduction STRING "batchmean"
in Loss@GRAD float64 [] -0.4
in Target float64 [4, 3, 3] -2 -4.6 0.7 -6.7 8.7 -0.9 -5.7 -9.4 3.9 -1.4 7.1 5 -0.4 9.2 6 -3.6 -8.9
  5.5 -8.3 -2.5 -4.1 2.8 6.6 -7.8 1.8 -6.2 -5.2 8.2 4.4 0.2 -3 7.6 1.2 -7.3 2.3 3.4
in X float64 [4, 3, 3] 0.9 -2.3 -0.7 8.3 7.3 -3.9 2.5 -9.1 -3.3 -7.6 -2.8 2 -6.5 -4.4 6.2 -7 5.1 -6
  -8.6 6.7 7.8 -4.9 1.4 -1.2 -0.1 9.4 -8.1 5.7 -1.7 4.6 3.6 8.8 4.1 3 -5.4 0.4
out X@GRAD float64 [4, 3, 3] 0 0 0.06999999999999999 0 0.87 0 0 0 0.39 0 0.71 0.5 0
  0.9199999999999999 0.6000000000000001 0 0 0.55 0 0 0 0.27999999999999997 0.66 0
  0.18000000000000002 0 0 0.82 0.44000000000000006 0.020000000000000004 0 0.76 0.12 0
  0.22999999999999998 0.34

example float32 3x2, reduction none
attr reduction STRING "none"
in Loss@GRAD float32 [3, 2] 0.2 -0.7 -0.1 0.5 -0.4 -0.7
in Target float32 [3, 2] 0.604 0.761 0.682 0.839 0.447 0.525
in X float32 [3, 2] -1.46 -0.71 -1.21 -0.46 -1.71 -0.96
out X@GRAD float32 [3, 2] -0.120799996 0.5327 0.0682 -0.4195 0.1788 0.36749998
)")
