// rank_loss, margin_rank_loss and bpr_loss: losses of orderings.
#include "kernels/base/shape_checks.h"

namespace heddle {
namespace {

Status InferRank(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckSameCount(ctx, "Left", "Label"));
  HEDDLE_RETURN_IF_ERROR(CheckSameCount(ctx, "Left", "Right"));
  ctx.SetOut("Out", ctx.InShape("Label"), ctx.InDType("Left"));
  return Status::Ok();
}

template <typename T>
struct Rank {
  static Status Run(KernelContext& ctx) {
    const Tensor& in = ctx.In("Label");
    const T* label = in.data<T>();
    const T* left = ctx.In("Left").data<T>();
    const T* right = ctx.In("Right").data<T>();
    T* out = ctx.Out("Out").mutable_data<T>();
    ForEachIndex(ctx, in.numel(), [=](int64_t i) {
      const T d = left[i] - right[i];
      out[i] = std::log1p(std::exp(-std::abs(d))) + std::max(d, T(0)) - label[i] * d;
    });
    return Status::Ok();
  }
};

Status InferRankGrad(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckSameCount(ctx, "Left", "Label"));
  HEDDLE_RETURN_IF_ERROR(CheckSameCount(ctx, "Left", "Right"));
  HEDDLE_RETURN_IF_ERROR(CheckSameCount(ctx, "Left", "Out@GRAD"));
  SetOutsLike(ctx, {{"Left", "Left@GRAD"}, {"Right", "Right@GRAD"}});
  return Status::Ok();
}

template <typename T>
struct RankGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& in = ctx.In("Label");
    const T* label = in.data<T>();
    const T* left = ctx.In("Left").data<T>();
    const T* right = ctx.In("Right").data<T>();
    const T* dout = ctx.In("Out@GRAD").data<T>();
    Tensor *gl = ctx.OutOpt("Left@GRAD"), *gr = ctx.OutOpt("Right@GRAD");
    T* dl = gl ? gl->mutable_data<T>() : nullptr;
    T* dr = gr ? gr->mutable_data<T>() : nullptr;
    ForEachIndex(ctx, in.numel(), [=](int64_t i) {
      const T d = dout[i] * (SigmoidOf(left[i] - right[i]) - label[i]);
      if (dl) dl[i] = d;
      if (dr) dr[i] = -d;
    });
    return Status::Ok();
  }
};

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

Status CheckBpr(const ShapeContext& ctx) {
  const Shape &x = ctx.InShape("X"), &label = ctx.InShape("Label");
  if (x.known_rank() && (x.rank() < 1 || (x.dim(-1) >= 0 && x.dim(-1) < 2)))
    return InvalidArgument("X must have at least two classes in its last axis, not ", x.ToString());
  if (x.is_static() && label.is_static() && label.numel() * x.dim(-1) != x.numel())
    return InvalidArgument("Label ", label.ToString(), " does not fit X ", x.ToString());
  return Status::Ok();
}

Status InferBpr(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckBpr(ctx));
  Shape y = ctx.InShape("X");
  if (y.known_rank()) y[y.rank() - 1] = 1;
  ctx.SetOut("Y", y, ctx.InDType("X"));
  ctx.ShareLoD("X", "Y");
  return Status::Ok();
}

// Mean over the other classes of log(1 + exp(x_j - x_label)).
template <typename T>
struct Bpr {
  static Status Run(KernelContext& ctx) {
    const Tensor& in = ctx.In("X");
    const int64_t c = in.dim(-1), rows = in.numel() / c;
    const Labels label(ctx, ctx.In("Label"));
    HEDDLE_RETURN_IF_ERROR(label.Check(rows, c, -1));
    const T* x = in.data<T>();
    T* y = ctx.Out("Y").mutable_data<T>();
    for (int64_t i = 0; i < rows; ++i) {
      if (label[i] < 0) return OutOfRange("label ", label[i], " is not in [0, ", c, ")");
      T sum = 0;
      for (int64_t j = 0; j < c; ++j)
        if (j != label[i])
          sum += Tolerable(std::log1p(std::exp(x[i * c + j] - x[i * c + label[i]])));
      y[i] = sum / static_cast<T>(c - 1);
    }
    return Status::Ok();
  }
};

Status InferBprGrad(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckBpr(ctx));
  HEDDLE_RETURN_IF_ERROR(CheckSameCount(ctx, "Label", "Y@GRAD"));
  return GradLikeInputs(ctx);
}

template <typename T>
struct BprGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& in = ctx.In("X");
    const int64_t c = in.dim(-1), rows = in.numel() / c;
    const Labels label(ctx, ctx.In("Label"));
    HEDDLE_RETURN_IF_ERROR(label.Check(rows, c, -1));
    const T* x = in.data<T>();
    const T* dy = ctx.In("Y@GRAD").data<T>();
    T* dx = ctx.Out("X@GRAD").mutable_data<T>();
    for (int64_t i = 0; i < rows; ++i) {
      if (label[i] < 0) return OutOfRange("label ", label[i], " is not in [0, ", c, ")");
      T own = 0;
      for (int64_t j = 0; j < c; ++j) {
        if (j == label[i]) continue;
        const T d = dy[i] / static_cast<T>(c - 1) * SigmoidOf(x[i * c + j] - x[i * c + label[i]]);
        dx[i * c + j] = d;
        own -= d;
      }
      dx[i * c + label[i]] = own;
    }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(rank_loss) {
  op.Doc("RankNet's pairwise loss")
      .Input("Label")
      .Input("Left")
      .Input("Right")
      .Output("Out")
      .InferShape(InferRank)
      .Kernels<Rank, float, double>();
}

HEDDLE_OP(rank_loss_grad) {
  op.Input("Label")
      .Input("Left")
      .Input("Right")
      .Input("Out@GRAD")
      .Output("Left@GRAD", kOptional)
      .Output("Right@GRAD", kOptional)
      .InferShape(InferRankGrad)
      .Kernels<RankGrad, float, double>();
}

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

HEDDLE_OP(bpr_loss) {
  op.Doc("Bayesian personalised ranking loss")
      .Input("X")
      .Input("Label")
      .Output("Y")
      .InferShape(InferBpr)
      .Kernels<Bpr, float, double>();
}

HEDDLE_OP(bpr_loss_grad) {
  op.Input("X")
      .Input("Label")
      .Input("Y@GRAD")
      .Output("X@GRAD")
      .InferShape(InferBprGrad)
      .Kernels<BprGrad, float, double>();
}

HEDDLE_EXAMPLES(rank_loss, R"(
example float32 4x1
in Label float32 [4, 1] 1 1 1 0
in Left float32 [4, 1] 0.405 0.209 0.6 0.795
in Right float32 [4, 1] 0.598 0.202 0.796 0.4
out Out float32 [4, 1] 0.794296 0.6896533 0.7959415 0.91002476

example float32 4
in Label float32 [4] 1*4
in Left float32 [4] 0.6 0.405 0.209 0.795
in Right float32 [4] 0.202 0.598 0.796 0.4
out Out float32 [4] 0.5138183 0.794296 1.0291138 0.5150248
)")

HEDDLE_EXAMPLES(rank_loss_grad, R"(
example float32 4x1
in Label float32 [4, 1] 1 1 1 0
in Left float32 [4, 1] 0.409 0.213 0.604 0.8
in Out@GRAD float32 [4, 1] 0.5 -0.8 -1 -0.4
in Right float32 [4, 1] 0.598 0.201 0.797 0.4
out Left@GRAD float32 [4, 1] -0.27355492 0.39760002 0.54810077 -0.23947506
out Right@GRAD float32 [4, 1] 0.27355492 -0.39760002 -0.54810077 0.23947506

example float32 4
in Label float32 [4] 0 0 1 1
in Left float32 [4] 0.213 0.604 0.8 0.409
in Out@GRAD float32 [4] 0.5 -0.8 -1 -0.4
in Right float32 [4] 0.4 0.797 0.598 0.201
out Left@GRAD float32 [4] 0.22669287 -0.3615194 0.44967103 0.17927466
out Right@GRAD float32 [4] -0.22669287 0.3615194 -0.44967103 -0.17927466
)")

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

HEDDLE_EXAMPLES(bpr_loss, R"(
example float64 3x4
in Label int64 [3, 1] 2 0 0
in X float64 [3, 4] 0.13 0.33 0.2 0.34 0.47 0.21 0.1 0.22 0.17 0.31 0.44 0.08
out Y float64 [3, 1] 0.7282043108558464 0.5575586186837388 0.7506622188283604

example float32 3x4
in Label int64 [3, 1] 2 0 0
in X float32 [3, 4] 0.13 0.33 0.2 0.34 0.47 0.21 0.1 0.22 0.17 0.31 0.44 0.08
out Y float32 [3, 1] 0.72820425 0.5575586 0.75066215
)")

HEDDLE_EXAMPLES(bpr_loss_grad, R"(
example float32
in Label int64 [3, 1] 2 3 2
in X float64 [3, 4] 0.35 0.23 -0.63 -0.22 0.9 0.21 0.38 -0.91 0.58 -0.88 -0.09 -0.82
in Y@GRAD float64 [3, 1] 0.2 -0.7 -0.1
out X@GRAD float64 [3, 4] 0.048473881089408644 0.0468440436229821 -0.13539044996894872
  0.04007252525655799 -0.20051777066203536 -0.17593070050475457 -0.18296767747474657
  0.5594161486415365 -0.02205010530676508 -0.01040562231390532 0.04329555186792662
  -0.010839824247256217
)")
