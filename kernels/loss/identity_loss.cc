#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/base/shape_checks.h"

namespace heddle {
namespace {

enum : int64_t { kSumAll = 0, kMeanAll = 1, kKeep = 2 };

Status InferIdentity(ShapeContext& ctx) {
  if (ctx.Int("reduction") == kKeep) return SameShape(ctx);
  ctx.SetOut("Out", Shape{}, ctx.InDType("X"));
  return Status::Ok();
}

template <typename T>
struct Identity {
  static Status Run(KernelContext& ctx) {
    const Tensor& in = ctx.In("X");
    const T* x = in.data<T>();
    T* out = ctx.Out("Out").mutable_data<T>();
    const int64_t n = in.numel(), how = ctx.Int("reduction");
    if (how == kKeep) {
      if (out != x) WatchedCopy(x, n, out);
      return Status::Ok();
    }
    T sum = 0;
    for (const auto part : Stretches(n))
      for (int64_t i = part.begin; i < part.end; ++i) sum += x[i];
    *out = how == kMeanAll ? sum / static_cast<T>(n) : sum;
    return Status::Ok();
  }
};

Status InferIdentityGrad(ShapeContext& ctx) {
  if (ctx.Int("reduction") == kKeep) HEDDLE_RETURN_IF_ERROR(CheckSameCount(ctx, "X", "Out@GRAD"));
  return GradLikeInputs(ctx);
}

template <typename T>
struct IdentityGrad {
  static Status Run(KernelContext& ctx) {
    const int64_t n = ctx.In("X").numel(), how = ctx.Int("reduction");
    const T* dout = ctx.In("Out@GRAD").data<T>();
    T* dx = ctx.Out("X@GRAD").mutable_data<T>();
    if (n == 0) return Status::Ok();
    if (how == kKeep) {
      if (dx != dout) WatchedCopy(dout, n, dx);
    } else {
      WatchedFill(dx, n, how == kMeanAll ? *dout / static_cast<T>(n) : *dout);
    }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(identity_loss) {
  op.Doc("marks a loss; reduction 0 = sum, 1 = mean, 2 = none")
      .Input("X")
      .Output("Out")
      .Attr("reduction", 1)
      .InferShape(InferIdentity)
      .Contract("X: float; reduction: 0..2")
      .Kernels<Identity, float, double>();
}

HEDDLE_OP(identity_loss_grad) {
  op.Input("X", kNoBuffer)
      .Input("Out@GRAD")
      .Output("X@GRAD")
      .Attr("reduction", 1)
      .InferShape(InferIdentityGrad)
      .Contract("X: float; Out@GRAD: as X; reduction: 0..2")
      .Kernels<IdentityGrad, float, double>();
}
