#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/base/convert.h"
#include "kernels/base/shape_checks.h"

namespace heddle {
namespace {

Status CheckOperands(const ShapeContext& ctx) {
  const Shape &x = ctx.InShape("X"), &label = ctx.InShape("Label");
  if (!x.known_rank() || !label.known_rank()) return Status::Ok();
  if (x.rank() < 2) return InvalidArgument("X must be [N, C, …], not ", x.ToString());
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
  HEDDLE_ASSIGN_OR_RETURN(const LossReduction how, LossReductionOf(ctx.Str("reduction")));
  ctx.SetOut("Out", how == LossReduction::kNone ? ctx.InShape("Label") : Shape{}, ctx.InDType("X"));
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
    HEDDLE_ASSIGN_OR_RETURN(const LossReduction how, LossReductionOf(ctx.Str("reduction")));
    const Tensor* weight = ctx.InOpt("Weight");
    const T* p = x.data<T>();
    T* out = ctx.Out("Out").mutable_data<T>();
    T total = 0, sum = 0;
    for (const int64_t i : Watched(rows)) {
      const bool skip = label[i] == ignore;
      const T w = skip ? T(0) : weight ? weight->data<T>()[label[i]] : T(1);
      const T loss = skip ? T(0) : -p[at.At(i, label[i])] * w;
      if (how == LossReduction::kNone) out[i] = loss;
      total += w;
      sum += loss;
    }
    if (how != LossReduction::kNone)
      *out = how == LossReduction::kMean && (total != T(0) || ctx.Bool("nan_of_nothing"))
                 ? sum / total
                 : sum;
    if (Tensor* t = ctx.OutOpt("Total_weight"))
      *t->mutable_data<T>() = how == LossReduction::kNone ? T(0) : total;
    return Status::Ok();
  }
};

Status InferNllGrad(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckOperands(ctx));
  HEDDLE_ASSIGN_OR_RETURN(const LossReduction how, LossReductionOf(ctx.Str("reduction")));
  if (how == LossReduction::kNone) HEDDLE_RETURN_IF_ERROR(CheckSameCount(ctx, "Label", "Out@GRAD"));
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
    HEDDLE_ASSIGN_OR_RETURN(const LossReduction how, LossReductionOf(ctx.Str("reduction")));
    const Tensor* weight = ctx.InOpt("Weight");
    const T* dout = ctx.In("Out@GRAD").data<T>();
    const T total = how == LossReduction::kMean ? *ctx.In("Total_weight").data<T>() : T(1);
    T* dx = ctx.Out("X@GRAD").mutable_data<T>();
    WatchedFill(dx, x.numel(), T(0));
    for (const int64_t i : Watched(rows)) {
      if (label[i] == ignore) continue;
      const T w = weight ? weight->data<T>()[label[i]] : T(1);
      const T d = how == LossReduction::kNone ? dout[i] : *dout;
      dx[at.At(i, label[i])] = -d * w / total;
    }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(nll_loss) {
  op.Doc(
        "negative log likelihood of log-probabilities [N, C, ...]; a mean of no weight is 0 or NaN")
      .Input("X")
      .Input("Label")
      .Input("Weight", kOptional)
      .Output("Out")
      .Output("Total_weight", kOptional)
      .Attr("ignore_index", -100)
      .Attr("reduction", "mean")
      .Attr("nan_of_nothing", false)
      .InferShape(InferNll)
      .Kernels<Nll, float, double>()
      .Kernel({DType::kF16, DType::kBF16}, RunInFloat);
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
