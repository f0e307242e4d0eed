// margin_rank_loss: the hinge loss of pairs of scores.
#include "kernels/base/shape_checks.h"

namespace heddle {
namespace {

Status InferMargin(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckSameCount(ctx, "Label", "X1"));
  HEDDLE_RETURN_IF_ERROR(CheckSameCount(ctx, "Label", "X2"));
  SetOutsLike(ctx, {{"Label", "Activated"}, {"Label", "Out"}});
  return Status::Ok();
}

template <typename T>
struct MarginRank {
  static Status Run(KernelContext& ctx) {
    const Tensor& in = ctx.In("Label");
    const T* label = in.data<T>();
    const T* a = ctx.In("X1").data<T>();
    const T* b = ctx.In("X2").data<T>();
    T* out = ctx.Out("Out").mutable_data<T>();
    Tensor* active = ctx.OutOpt("Activated");
    T* act = active ? active->mutable_data<T>() : nullptr;
    const T margin = static_cast<T>(ctx.Float("margin"));
    ForEachIndex(ctx, in.numel(), [=](int64_t i) {
      const T v = margin - label[i] * (a[i] - b[i]);
      out[i] = std::max(v, T(0));
      if (act) act[i] = v > T(0) ? T(1) : T(0);
    });
    return Status::Ok();
  }
};

Status InferMarginGrad(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckSameCount(ctx, "Label", "Activated"));
  HEDDLE_RETURN_IF_ERROR(CheckSameCount(ctx, "Label", "Out@GRAD"));
  SetOutsLike(ctx, {{"Label", "X1@GRAD"}, {"Label", "X2@GRAD"}});
  return Status::Ok();
}

template <typename T>
struct MarginRankGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& in = ctx.In("Label");
    const T* label = in.data<T>();
    const T* act = ctx.In("Activated").data<T>();
    const T* dout = ctx.In("Out@GRAD").data<T>();
    Tensor *ga = ctx.OutOpt("X1@GRAD"), *gb = ctx.OutOpt("X2@GRAD");
    T* da = ga ? ga->mutable_data<T>() : nullptr;
    T* db = gb ? gb->mutable_data<T>() : nullptr;
    ForEachIndex(ctx, in.numel(), [=](int64_t i) {
      const T d = dout[i] * act[i] * label[i];
      if (da) da[i] = -d;
      if (db) db[i] = d;
    });
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(margin_rank_loss) {
  op.Doc("max(0, margin - label (x1 - x2))")
      .Input("Label")
      .Input("X1")
      .Input("X2")
      .Output("Activated", kOptional)
      .Output("Out")
      .Attr("margin", 0.0)
      .InferShape(InferMargin)
      .Kernels<MarginRank, float, double>();
}

HEDDLE_OP(margin_rank_loss_grad) {
  op.Input("Label")
      .Input("Activated")
      .Input("Out@GRAD")
      .Output("X1@GRAD", kOptional)
      .Output("X2@GRAD", kOptional)
      .Attr("margin", 0.0)
      .InferShape(InferMarginGrad)
      .Kernels<MarginRankGrad, float, double>();
}

HEDDLE_EXAMPLES(margin_rank_loss, R"(
example margin 0.1, float32
attr margin FLOAT 0.1
in Label float32 [4, 1] 1 -1 1 1
in X1 float32 [4, 1] -0.57 -0.5 -0.85 0.72
in X2 float32 [4, 1] 0.22 -0.68 -0.02 0.86
from elementwise_sub X=X1 Y=X2 -> Out=d
from elementwise_mul X=Label Y=d -> Out=e
from scale X=e -> Out=m
attr scale FLOAT -1
attr bias FLOAT 0.1
from relu X=m -> Out=Out
from sign X=Out -> Out=Activated
out Out float32 [4, 1] 0.89 0.28 0.93000007 0.23999998
out Activated float32 [4, 1] 1*4

example margin 0.1, float64
attr margin FLOAT 0.1
in Label float64 [4, 1] 1 -1 1 1
in X1 float64 [4, 1] -0.3 -0.36 0.16 0.64
in X2 float64 [4, 1] -0.6 -0.2 0.5 0.05
from elementwise_sub X=X1 Y=X2 -> Out=d
from elementwise_mul X=Label Y=d -> Out=e
from scale X=e -> Out=m
attr scale FLOAT -1
attr bias FLOAT 0.1
from relu X=m -> Out=Out
from sign X=Out -> Out=Activated
out Out float64 [4, 1] 0 0 0.4400000014901161 0
out Activated float64 [4, 1] 0 0 1 0

example margin 0, float32
attr margin FLOAT 0.0
in Label float32 [4, 1] 1 -1 1 1
in X1 float32 [4, 1] 0.96 -0.8 0.34 0.37
in X2 float32 [4, 1] -0.6 -0.91 0.05 -0.24
from elementwise_sub X=X1 Y=X2 -> Out=d
from elementwise_mul X=Label Y=d -> Out=e
from scale X=e -> Out=m
attr scale FLOAT -1
attr bias FLOAT 0
from relu X=m -> Out=Out
from sign X=Out -> Out=Activated
out Out float32 [4, 1] 0 0.110000014 0 0
out Activated float32 [4, 1] 0 1 0 0
)")

HEDDLE_EXAMPLES(margin_rank_loss_grad, R"(
example float32
attr margin FLOAT 0.1
in Label float32 [4, 1] 1 -1 1 1
in Activated float32 [4, 1] 1 0 1 1
in Out@GRAD float32 [4, 1] 0.98 0.37 -0.99 0.45
from elementwise_mul X=Out@GRAD Y=Activated -> Out=t
from elementwise_mul X=t Y=Label -> Out=X2@GRAD
from scale X=X2@GRAD -> Out=X1@GRAD
attr scale FLOAT -1
out X1@GRAD float32 [4, 1] -0.98 0 0.99 -0.45
out X2@GRAD float32 [4, 1] 0.98 -0 -0.99 0.45

example float64
attr margin FLOAT 0.1
in Label float64 [4, 1] 1 -1 1 1
in Activated float64 [4, 1] 1 0 1 1
in Out@GRAD float64 [4, 1] -0.35 -0.76 -0.66 0
from elementwise_mul X=Out@GRAD Y=Activated -> Out=t
from elementwise_mul X=t Y=Label -> Out=X2@GRAD
from scale X=X2@GRAD -> Out=X1@GRAD
attr scale FLOAT -1
out X1@GRAD float64 [4, 1] 0.35 0 0.66 0
out X2@GRAD float64 [4, 1] -0.35 0 -0.66 0
)")
