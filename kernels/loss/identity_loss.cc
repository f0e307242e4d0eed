#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/base/shape_checks.h"

namespace heddle {
namespace {

enum : int64_t { kSumAll = 0, kMeanAll = 1, kKeep = 2 };

Status InferIdentity(ShapeContext& ctx) {
  const int64_t how = ctx.Int("reduction");
  if (how < kSumAll || how > kKeep)
    return InvalidArgument("reduction must be 0, 1 or 2, not ", how);
  if (how == kKeep) return SameShape(ctx);
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
      .Kernels<Identity, float, double>();
}

HEDDLE_OP(identity_loss_grad) {
  op.Input("X", kNoBuffer)
      .Input("Out@GRAD")
      .Output("X@GRAD")
      .Attr("reduction", 1)
      .InferShape(InferIdentityGrad)
      .Kernels<IdentityGrad, float, double>();
}

HEDDLE_EXAMPLES(identity_loss, R"(
example float64 4x3x2, reduction 2
attr reduction INT 2
in X float64 [4, 3, 2] 0.48 0.4 0.04 0.839 0.44 0.559 0.679 0.959 0.28 0.16 0.519 0.24 0.08 0.719
  0.36 0.2 0.639 0.12 0.799 0.599 0.919 0.879 0.32 0.759
out Out float64 [4, 3, 2] 0.48 0.4 0.04 0.839 0.44 0.559 0.679 0.959 0.28 0.16 0.519 0.24 0.08 0.719
  0.36 0.2 0.639 0.12 0.799 0.599 0.919 0.879 0.32 0.759

example float64 4x3x4, reduction 0
attr reduction INT 0
in X float64 [4, 3, 4] 0.204 0.979 0.184 0.694 0.653 0.143 0.082 0.836 0.061 0.326 0.877 0.408 0.469
  0.347 0.367 0.796 0.959 0.102 0.857 0.551 0.612 0.245 0.265 0.123 0.306 0.225 0.449 0.388 0.286
  0.734 0.673 0.816 0.714 0.51 0.918 0.428 0.775 0.755 0.571 0.898 0.53 0.938 0.041 0.592 0.632
  0.021 0.163 0.49
out Out float64 [] 23.993

example float32 4x3x2, reduction 2
attr reduction INT 2
in X float32 [4, 3, 2] 0.48 0.4 0.04 0.839 0.44 0.559 0.679 0.959 0.28 0.16 0.519 0.24 0.08 0.719
  0.36 0.2 0.639 0.12 0.799 0.599 0.919 0.879 0.32 0.759
out Out float32 [4, 3, 2] 0.48 0.4 0.04 0.839 0.44 0.559 0.679 0.959 0.28 0.16 0.519 0.24 0.08 0.719
  0.36 0.2 0.639 0.12 0.799 0.599 0.919 0.879 0.32 0.759
)")

HEDDLE_EXAMPLES(identity_loss_grad, R"(
example float64 4x3
in Out@GRAD float64 [] 0.1
in X float64 [4, 3] 0.234 0.767 0.691 0.463 0.158 0.387 0.539 0.92 0.082 0.844 0.615 0.31
out X@GRAD float64 [4, 3] 0.008333333333333333*12

example float64 4x3x2, reduction 2
attr reduction INT 2
in Out@GRAD float64 [4, 3, 2] -0.8 0.3 -0.2 0.2 0.4 0.4 0.9 0.3 0 -0.8 -0.2 -0.4 -0.7 -1 -0.2 -0 -1
  0.1 -0.8 -0.2 -0.4 0.5 0.2 -0.2
in X float64 [4, 3, 2] 0.32 0.877 0.479 0.042 0.916 0.956 0.837 0.082 0.678 0.797 0.598 0.757 0.121
  0.519 0.638 0.718 0.28 0.201 0.439 0.36 0.241 0.4 0.161 0.559
out X@GRAD float64 [4, 3, 2] -0.8 0.3 -0.2 0.2 0.4 0.4 0.9 0.3 0 -0.8 -0.2 -0.4 -0.7 -1 -0.2 -0 -1
  0.1 -0.8 -0.2 -0.4 0.5 0.2 -0.2

example float32 4x3
in Out@GRAD float32 [] 0.1
in X float32 [4, 3] 0.234 0.767 0.691 0.463 0.158 0.387 0.539 0.92 0.082 0.844 0.615 0.31
out X@GRAD float32 [4, 3] 0.008333334*12
)")
