#include "core/interrupts.h"
#include "kernels/base/shape_checks.h"

namespace heddle {
namespace {

template <typename T>
struct Bce {
  static Status Run(KernelContext& ctx) {
    const Tensor& in = ctx.In("X");
    const T* x = in.data<T>();
    const T* label = ctx.In("Label").data<T>();
    const int64_t n = in.numel();
    for (const auto part : Stretches(n))
      for (int64_t i = part.begin; i < part.end; ++i)
        if (!(x[i] >= T(0) && x[i] <= T(1))) [[unlikely]]
          return OutOfRange("X must lie in [0, 1], but element ", i, " is ", x[i]);
    T* out = ctx.Out("Out").mutable_data<T>();
    ForEachIndex(ctx, n, [=](int64_t i) {
      out[i] = (label[i] - T(1)) * std::max(std::log(T(1) - x[i]), T(-100)) -
               label[i] * std::max(std::log(x[i]), T(-100));
    });
    return Status::Ok();
  }
};

template <typename T>
struct BceGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& in = ctx.In("X");
    const T* x = in.data<T>();
    const T* label = ctx.In("Label").data<T>();
    const T* dout = ctx.In("Out@GRAD").data<T>();
    T* dx = ctx.Out("X@GRAD").mutable_data<T>();
    ForEachIndex(ctx, in.numel(), [=](int64_t i) {
      dx[i] = dout[i] * ((x[i] - label[i]) / std::max((T(1) - x[i]) * x[i], T(1e-12)));
    });
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(bce_loss) {
  op.Doc("binary cross entropy of probabilities")
      .Input("X")
      .Input("Label")
      .Output("Out")
      .Inplace("X", "Out")
      .Contract("X: float; Label: as X count X; Out: like X")
      .Kernels<Bce, float, double>();
}

HEDDLE_OP(bce_loss_grad) {
  op.Input("X")
      .Input("Label")
      .Input("Out@GRAD")
      .Output("X@GRAD")
      .Inplace("Out@GRAD", "X@GRAD")
      .Contract("X: float; Label, Out@GRAD: as X count X; X@GRAD: like X")
      .Kernels<BceGrad, float, double>();
}
