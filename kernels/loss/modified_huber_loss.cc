// modified_huber_loss: the Huber loss of a classification margin.
#include "core/interrupts.h"
#include "kernels/base/shape_checks.h"

namespace heddle {
namespace {

Status InferModified(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckSameCount(ctx, "X", "Y"));
  SetOutsLike(ctx, {{"X", "IntermediateVal"}});
  Shape out = ctx.InShape("X");
  if (out.known_rank() && out.rank() > 1) out = Shape{out[0], 1};
  if (out.is_static() && ctx.InShape("X").is_static() && out.numel() != ctx.InShape("X").numel())
    return InvalidArgument("X must be [N, 1], not ", ctx.InShape("X").ToString());
  ctx.SetOut("Out", out, ctx.InDType("X"));
  return Status::Ok();
}

template <typename T>
struct ModifiedHuber {
  static Status Run(KernelContext& ctx) {
    const Tensor& in = ctx.In("X");
    const T* x = in.data<T>();
    const T* y = ctx.In("Y").data<T>();
    T* out = ctx.Out("Out").mutable_data<T>();
    Tensor* inter = ctx.OutOpt("IntermediateVal");
    T* mid = inter ? inter->mutable_data<T>() : nullptr;
    for (const auto some : Stretches(in.numel()))
      for (int64_t i = some.begin; i < some.end; ++i) {
        const T v = x[i] * (T(2) * y[i] - T(1));
        out[i] = v < T(-1) ? T(-4) * v : v < T(1) ? (T(1) - v) * (T(1) - v) : T(0);
        if (mid) mid[i] = v;
      }
    return Status::Ok();
  }
};

template <typename T>
struct ModifiedHuberGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& mid = ctx.In("IntermediateVal");
    const T* v = mid.data<T>();
    const T* y = ctx.In("Y").data<T>();
    const T* dout = ctx.In("Out@GRAD").data<T>();
    T* dx = ctx.Out("X@GRAD").mutable_data<T>();
    for (const auto part : Stretches(mid.numel()))
      for (int64_t i = part.begin; i < part.end; ++i) {
        const T slope = v[i] < T(-1) ? T(-4) : v[i] < T(1) ? T(-2) * (T(1) - v[i]) : T(0);
        dx[i] = slope * (T(2) * y[i] - T(1)) * dout[i];
      }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(modified_huber_loss) {
  op.Doc("modified Huber loss for binary labels 0 and 1")
      .Input("X")
      .Input("Y")
      .Output("IntermediateVal", kOptional)
      .Output("Out")
      .InferShape(InferModified)
      .Kernels<ModifiedHuber, float, double>();
}

HEDDLE_OP(modified_huber_loss_grad) {
  op.Input("Y")
      .Input("IntermediateVal")
      .Input("Out@GRAD")
      .Output("X@GRAD")
      .Contract(
          "IntermediateVal: float; Y, Out@GRAD: as IntermediateVal count IntermediateVal; "
          "X@GRAD: like IntermediateVal")
      .Kernels<ModifiedHuberGrad, float, double>();
}
