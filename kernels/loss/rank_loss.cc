// rank_loss: the logistic loss of pairs of scores (RankNet).
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
