// margin_rank_loss: the hinge loss of pairs of scores.
#include "kernels/base/shape_checks.h"

namespace heddle {
namespace {

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
      .Contract("Label: float; X1, X2: as Label count Label; Activated, Out: like Label")
      .Kernels<MarginRank, float, double>();
}

HEDDLE_OP(margin_rank_loss_grad) {
  op.Input("Label")
      .Input("Activated")
      .Input("Out@GRAD")
      .Output("X1@GRAD", kOptional)
      .Output("X2@GRAD", kOptional)
      .Attr("margin", 0.0)
      .Contract(
          "Label: float; Activated, Out@GRAD: as Label count Label; X1@GRAD, X2@GRAD: like "
          "Label")
      .Kernels<MarginRankGrad, float, double>();
}
