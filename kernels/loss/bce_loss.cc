#include "core/interrupts.h"
#include "kernels/base/shape_checks.h"

namespace heddle {
namespace {

Status InferBce(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckSameCount(ctx, "X", "Label"));
  return SameShape(ctx);
}

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

Status InferBceGrad(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckSameCount(ctx, "X", "Label"));
  HEDDLE_RETURN_IF_ERROR(CheckSameCount(ctx, "X", "Out@GRAD"));
  return GradLikeInputs(ctx);
}

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
      .InferShape(InferBce)
      .Kernels<Bce, float, double>();
}

HEDDLE_OP(bce_loss_grad) {
  op.Input("X")
      .Input("Label")
      .Input("Out@GRAD")
      .Output("X@GRAD")
      .Inplace("Out@GRAD", "X@GRAD")
      .InferShape(InferBceGrad)
      .Kernels<BceGrad, float, double>();
}

HEDDLE_EXAMPLES(bce_loss, R"(
example float32 2
in Label float32 [2] 1 1
in X float32 [2] 0.35 0.62
out Out float32 [2] 1.0498221 0.4780358

example float32 2x6
in Label float32 [2, 6] 1 0 1 0 1 0 0 1 1 0 0 1
in X float32 [2, 6] 0.344 0.703 0.652 0.498 0.293 0.447 0.549 0.806 0.242 0.754 0.6 0.395
out Out float32 [2, 6] 1.0671136 1.2140231 0.4277107 0.6891552 1.2275826 0.59239733 0.796288
  0.21567154 1.4188175 1.4024237 0.9162908 0.9288695

example float64 4x3
in Label float64 [4, 3] 0 1 1 1 0 0 0 1*4 0
in X float64 [4, 3] 0.477 0.585 0.316 0.37 0.746 0.155 0.208 0.423 0.638 0.531 0.262 0.692
out Out float64 [4, 3] 0.6481738149172142 0.5361434317502807 1.152013065395225 0.9942522733438669
  1.3704210119636004 0.16841865162496325 0.23319388716771114 0.8603830999358592 0.44941699563734716
  0.6329932577401982 1.3394107752210402 1.1776554960085623

example float32 3x4x2
in Label float32 [3, 4, 2] 0*4 1 1 0 1 0 1 1 1 0 1 1 1 0 1 1 0 1 0 0 0
in X float32 [3, 4, 2] 0.789 0.819 0.487 0.577 0.729 0.638 0.154 0.426 0.456 0.759 0.305 0.335 0.214
  0.184 0.244 0.85 0.698 0.547 0.396 0.668 0.275 0.366 0.608 0.517
out Out float32 [3, 4, 2] 1.555897 1.7092583 0.6674794 0.86038315 0.31608158 0.44941697 0.1672359
  0.85331595 0.60880595 0.2757535 1.1874435 1.0936247 0.24079847 1.6928195 1.4105871 0.1625189
  1.1973283 0.6033065 0.92634106 1.1026202 1.2909842 0.45570633 0.9364934 0.7277387
)")

HEDDLE_EXAMPLES(bce_loss_grad, R"(
example float64 2
in Label float64 [2] 1 1
in Out@GRAD float64 [2] 0.3 -0
in X float64 [2] 0.61 0.36
out X@GRAD float64 [2] -0.4918032786885246 0

example float64 4x4
in Label float64 [4, 4] 1 1 1 0 1 0 0 1 1 0 1 1 0 1 0 1
in Out@GRAD float64 [4, 4] 0.8 0 -0.9 -0.2 0.4 -0.7 -0.9 0.4 0.8 -0.7 -1 0.2 0.6 -0.6 -0 -0.3
in X float64 [4, 4] 0.43 0.389 0.512 0.185 0.634 0.471 0.145 0.267 0.756 0.593 0.553 0.349 0.226
  0.675 0.308 0.716
out X@GRAD float64 [4, 4] -1.86046511627907 -0 1.7578125 -0.245398773006135 -0.6309148264984228
  -1.3232514177693762 -1.0526315789473684 -1.4981273408239701 -1.0582010582010584
  -1.7199017199017197 1.8083182640144664 -0.5730659025787966 0.7751937984496123 0.8888888888888888
  -0 0.41899441340782123

example float32 2
in Label float32 [2] 1 1
in Out@GRAD float32 [2] 0.3 -0
in X float32 [2] 0.61 0.36
out X@GRAD float32 [2] -0.4918033 0
)")
