// smooth_l1_loss: the Huber loss with weights, summed per row.
#include "core/interrupts.h"
#include "kernels/base/shape_checks.h"

namespace heddle {
namespace {

// smooth_l1_loss: Diff = (X - Y) * InsideWeight; one loss per row.
template <typename T>
struct SmoothL1 {
  static Status Run(KernelContext& ctx) {
    const Tensor& in = ctx.In("X");
    const T* x = in.data<T>();
    const T* y = ctx.In("Y").data<T>();
    const Tensor *inside = ctx.InOpt("InsideWeight"), *outside = ctx.InOpt("OutsideWeight");
    T* diff = ctx.Out("Diff").mutable_data<T>();
    T* out = ctx.Out("Out").mutable_data<T>();
    const T s2 = static_cast<T>(ctx.Float("sigma") * ctx.Float("sigma"));
    const int64_t rows = in.dim(0), width = rows == 0 ? 0 : in.numel() / rows;
    for (const int64_t r : Watched(rows)) {
      T sum = 0;
      for (int64_t i = r * width; i < (r + 1) * width; ++i) {
        const T d = (x[i] - y[i]) * (inside ? inside->data<T>()[i] : T(1)), a = std::abs(d);
        diff[i] = d;
        const T loss = a < T(1) / s2 ? T(0.5) * s2 * d * d : a - T(0.5) / s2;
        sum += loss * (outside ? outside->data<T>()[i] : T(1));
      }
      out[r] = sum;
    }
    return Status::Ok();
  }
};

template <typename T>
struct SmoothL1Grad {
  static Status Run(KernelContext& ctx) {
    const Tensor& in = ctx.In("Diff");
    const T* diff = in.data<T>();
    const T* dout = ctx.In("Out@GRAD").data<T>();
    const Tensor *inside = ctx.InOpt("InsideWeight"), *outside = ctx.InOpt("OutsideWeight");
    Tensor *gx = ctx.OutOpt("X@GRAD"), *gy = ctx.OutOpt("Y@GRAD");
    const T s2 = static_cast<T>(ctx.Float("sigma") * ctx.Float("sigma"));
    const int64_t rows = in.dim(0), width = rows == 0 ? 1 : in.numel() / rows;
    for (const auto part : Stretches(in.numel()))
      for (int64_t i = part.begin; i < part.end; ++i) {
        const T a = std::abs(diff[i]);
        T d = a < T(1) / s2 ? s2 * diff[i] : diff[i] > T(0) ? T(1) : T(-1);
        d *= dout[i / width];
        if (inside) d *= inside->data<T>()[i];
        if (outside) d *= outside->data<T>()[i];
        if (gx) gx->mutable_data<T>()[i] = d;
        if (gy) gy->mutable_data<T>()[i] = -d;
      }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(smooth_l1_loss) {
  op.Doc("smoothed L1 distance of each row")
      .Input("X")
      .Input("Y")
      .Input("InsideWeight", kOptional)
      .Input("OutsideWeight", kOptional)
      .Output("Diff")
      .Output("Out")
      .Attr("sigma", 1.0)
      .Contract(
          "X: float [N, _, ..._]; Y, InsideWeight, OutsideWeight: as X count X; Diff: like "
          "X; Out: as X [N, 1]")
      .Kernels<SmoothL1, float, double>();
}

HEDDLE_OP(smooth_l1_loss_grad) {
  op.Input("Diff")
      .Input("InsideWeight", kOptional)
      .Input("OutsideWeight", kOptional)
      .Input("Out@GRAD")
      .Output("X@GRAD", kOptional)
      .Output("Y@GRAD", kOptional)
      .Attr("sigma", 1.0)
      .Contract(
          "Diff: float [N, ..._]; InsideWeight, OutsideWeight: as Diff count Diff; "
          "Out@GRAD: as Diff count N; X@GRAD, Y@GRAD: like Diff")
      .Kernels<SmoothL1Grad, float, double>();
}
