// rank_loss: the logistic loss of pairs of scores (RankNet).
#include "kernels/base/shape_checks.h"

namespace heddle {
namespace {

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
      .Contract("Left: float; Label, Right: as Left count Left; Out: like Label")
      .Kernels<Rank, float, double>();
}

HEDDLE_OP(rank_loss_grad) {
  op.Input("Label")
      .Input("Left")
      .Input("Right")
      .Input("Out@GRAD")
      .Output("Left@GRAD", kOptional)
      .Output("Right@GRAD", kOptional)
      .Contract(
          "Left: float; Label, Right, Out@GRAD: as Left count Left; Left@GRAD: like Left; "
          "Right@GRAD: like Right")
      .Kernels<RankGrad, float, double>();
}
