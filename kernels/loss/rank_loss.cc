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
