#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/base/shape_checks.h"

namespace heddle {
namespace {

Status CheckOperands(const ShapeContext& ctx) {
  const Shape &x = ctx.InShape("X"), &label = ctx.InShape("Label");
  if (!x.known_rank() || !label.known_rank()) return Status::Ok();
  if (x.rank() != 2 && x.rank() != 4)
    return InvalidArgument("X must be [N, C] or [N, C, H, W], not ", x.ToString());
  if (x.is_static() && label.is_static() && label.numel() * x[1] != x.numel())
    return InvalidArgument("Label ", label.ToString(), " does not fit X ", x.ToString());
  if (ctx.HasIn("Weight")) {
    const Shape& w = ctx.InShape("Weight");
    if (w.is_static() && x[1] >= 0 && w.numel() != x[1])
      return InvalidArgument("Weight ", w.ToString(), " must have ", x[1], " elements");
  }
  return Status::Ok();
}

Status InferNll(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckOperands(ctx));
  HEDDLE_ASSIGN_OR_RETURN(const Reduction how, ReductionOf(ctx.Str("reduction")));
  ctx.SetOut("Out", how == Reduction::kNone ? ctx.InShape("Label") : Shape{}, ctx.InDType("X"));
  if (ctx.HasOut("Total_weight")) ctx.SetOut("Total_weight", Shape{}, ctx.InDType("X"));
  return Status::Ok();
}

// Element (n, label, j) of X seen as [outer, classes, inner].
struct Layout {
  int64_t outer, classes, inner;
  explicit Layout(const Shape& x) : outer(x[0]), classes(x[1]), inner(x.Product(2, x.rank())) {}
  int64_t At(int64_t row, int64_t label) const {
    return (row / inner * classes + label) * inner + row % inner;
  }
};

template <typename T>
struct Nll {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    const Layout at(x.shape());
    const int64_t rows = at.outer * at.inner, ignore = ctx.Int("ignore_index");
    const Labels label(ctx, ctx.In("Label"));
    HEDDLE_RETURN_IF_ERROR(label.Check(rows, at.classes, ignore));
    HEDDLE_ASSIGN_OR_RETURN(const Reduction how, ReductionOf(ctx.Str("reduction")));
    const Tensor* weight = ctx.InOpt("Weight");
    const T* p = x.data<T>();
    T* out = ctx.Out("Out").mutable_data<T>();
    T total = 0, sum = 0;
    for (const int64_t i : Watched(rows)) {
      const bool skip = label[i] == ignore;
      const T w = skip ? T(0) : weight ? weight->data<T>()[label[i]] : T(1);
      const T loss = skip ? T(0) : -p[at.At(i, label[i])] * w;
      if (how == Reduction::kNone) out[i] = loss;
      total += w;
      sum += loss;
    }
    if (how != Reduction::kNone)
      *out = how == Reduction::kMean && total != T(0) ? sum / total : sum;
    if (Tensor* t = ctx.OutOpt("Total_weight"))
      *t->mutable_data<T>() = how == Reduction::kNone ? T(0) : total;
    return Status::Ok();
  }
};

Status InferNllGrad(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckOperands(ctx));
  HEDDLE_ASSIGN_OR_RETURN(const Reduction how, ReductionOf(ctx.Str("reduction")));
  if (how == Reduction::kNone) HEDDLE_RETURN_IF_ERROR(CheckSameCount(ctx, "Label", "Out@GRAD"));
  return GradLikeInputs(ctx);
}

template <typename T>
struct NllGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    const Layout at(x.shape());
    const int64_t rows = at.outer * at.inner, ignore = ctx.Int("ignore_index");
    const Labels label(ctx, ctx.In("Label"));
    HEDDLE_RETURN_IF_ERROR(label.Check(rows, at.classes, ignore));
    HEDDLE_ASSIGN_OR_RETURN(const Reduction how, ReductionOf(ctx.Str("reduction")));
    const Tensor* weight = ctx.InOpt("Weight");
    const T* dout = ctx.In("Out@GRAD").data<T>();
    const T total = how == Reduction::kMean ? *ctx.In("Total_weight").data<T>() : T(1);
    T* dx = ctx.Out("X@GRAD").mutable_data<T>();
    WatchedFill(dx, x.numel(), T(0));
    for (const int64_t i : Watched(rows)) {
      if (label[i] == ignore) continue;
      const T w = weight ? weight->data<T>()[label[i]] : T(1);
      const T d = how == Reduction::kNone ? dout[i] : *dout;
      dx[at.At(i, label[i])] = -d * w / total;
    }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(nll_loss) {
  op.Doc("negative log likelihood of log-probabilities [N, C, ...]")
      .Input("X")
      .Input("Label")
      .Input("Weight", kOptional)
      .Output("Out")
      .Output("Total_weight", kOptional)
      .Attr("ignore_index", -100)
      .Attr("reduction", "mean")
      .InferShape(InferNll)
      .Kernels<Nll, float, double>();
}

HEDDLE_OP(nll_loss_grad) {
  op.Input("X")
      .Input("Label")
      .Input("Weight", kOptional)
      .Input("Total_weight")
      .Input("Out@GRAD")
      .Output("X@GRAD")
      .Attr("ignore_index", -100)
      .Attr("reduction", "mean")
      .InferShape(InferNllGrad)
      .Kernels<NllGrad, float, double>();
}

HEDDLE_EXAMPLES(nll_loss, R"(
example float32 2x4, reduction sum
attr reduction STRING "sum"
in Label int64 [2] 2 1
in Weight float32 [4] 0.757 0.705 0.602 0.653
in X float32 [2, 4] -1.22 -0.62 -1.07 -0.48 -0.33 -0.77 -0.92 -1.37
out Out float32 [] 1.18699
out Total_weight float32 [] 1.3069999

example float32 1x2x2x1, reduction none
attr reduction STRING "none"
in Label int64 [1, 2, 1] 1 1
in Weight float32 [2] 0.589 0.645
in X float32 [1, 2, 2, 1] -1.08 -1.44 -0.37 -0.73
out Out float32 [1, 2, 1] 0.23865 0.47085
out Total_weight float32 [] 0

example float64 4x4, reduction sum
attr reduction STRING "sum"
in Label int64 [4] 0 0 2 1
in Weight float64 [4] 0.274 0.63 0.808 0.452
in X float64 [4, 4] 0.525 0.293 0.235 0.119 0.699 0.409 0.873 0.061 0.931 0.583 0.757 0.351 0.815
  0.467 0.177 0.641
out Out float64 [] -1.2412420000000002
out Total_weight float64 [] 1.9860000000000002
)")

HEDDLE_EXAMPLES(nll_loss_grad, R"(
example float64 1x2x2x1, reduction none
attr reduction STRING "none"
in Label int64 [1, 2, 1] 1 0
in Out@GRAD float64 [1, 2, 1] -0.4 0.7
in Total_weight float64 [] 0
in Weight float64 [2] 0.408 0.796
in X float64 [1, 2, 2, 1] -1.44 -0.37 -0.73 -1.08
out X@GRAD float64 [1, 2, 2, 1] 0 -0.28559999999999997 0.3184 0

example float64 2x4, reduction sum
attr reduction STRING "sum"
in Label int64 [2] 2 1
in Out@GRAD float64 [] 0.3
in Total_weight float64 [] 1.359
in Weight float64 [4] 0.705 0.602 0.757 0.653
in X float64 [2, 4] -1.07 -0.48 -0.62 -1.22 -0.77 -0.33 -1.37 -0.92
out X@GRAD float64 [2, 4] 0 0 -0.2271 0 0 -0.18059999999999998 0 0

example float32 1x2x2x1, reduction none
attr reduction STRING "none"
in Label int64 [1, 2, 1] 1 0
in Out@GRAD float32 [1, 2, 1] -0.4 0.7
in Total_weight float32 [] 0
in Weight float32 [2] 0.408 0.796
in X float32 [1, 2, 2, 1] -1.44 -0.37 -0.73 -1.08
out X@GRAD float32 [1, 2, 2, 1] 0 -0.28559998 0.3184 0
)")
