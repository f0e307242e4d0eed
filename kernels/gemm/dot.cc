// dot: inner products of the rows of two tensors.
#include <complex>

#include "core/error.h"
#include "core/interrupts.h"
#include "kernels/base/check.h"
#include "kernels/elementwise/arithmetic.h"

namespace heddle {
namespace {

// Rows are added up in blocks, which keeps rounding errors small.
template <typename T>
T Dot(const T* x, const T* y, int64_t n) {
  constexpr int kLanes = 8;
  T lanes[kLanes] = {};
  int64_t i = 0;
  for (const auto part : Stretches(n / kLanes * kLanes))
    for (; i < part.end; i += kLanes)
      for (int j = 0; j < kLanes; ++j) lanes[j] += MulFn::Apply(x[i + j], y[i + j]);
  T total = ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) +
            ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
  for (; i < n; ++i) total += MulFn::Apply(x[i], y[i]);
  return total;
}

int64_t RowLength(const Shape& x) { return x.rank() == 0 ? 1 : x.dim(-1); }

template <typename T>
struct DotKernel {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    const Tensor& y = ctx.In("Y");
    Tensor& out = ctx.Out("Out");
    HEDDLE_RETURN_IF_ERROR(CheckSameDType(ctx, x, y));
    if (x.numel() != y.numel())
      return InvalidArgument("X has shape ", x.shape().ToString(), ", Y has ",
                             y.shape().ToString());
    const int64_t n = RowLength(x.shape());
    T* o = out.mutable_data<T>();
    for (const int64_t r : Watched(out.numel()))
      o[r] = Dot(x.data<T>() + r * n, y.data<T>() + r * n, n);
    return Status::Ok();
  }
};

template <typename T>
struct DotGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    const Tensor& y = ctx.In("Y");
    const Tensor& dout = ctx.In("Out@GRAD");
    const int64_t n = RowLength(x.shape());
    HEDDLE_RETURN_IF_ERROR(CheckDType(kDTypeOf<T>, {&x, &y}));
    if (x.numel() != y.numel() || dout.numel() * n != x.numel())
      return InvalidArgument("X ", x.shape().ToString(), ", Y ", y.shape().ToString(),
                             " and Out@GRAD ", dout.shape().ToString(), " do not fit each other");
    const auto scale = [&](const Tensor& other, Tensor* d) {
      if (d == nullptr) return;
      T* to = d->mutable_data<T>();
      const T* from = other.data<T>();
      const T* g = dout.data<T>();
      for (const auto part : Stretches(x.numel()))
        for (int64_t i = part.begin; i < part.end; ++i)
          to[i] = MulFn::Apply(Conj(from[i]), g[i / n]);
    };
    scale(y, ctx.OutOpt("X@GRAD"));
    scale(x, ctx.OutOpt("Y@GRAD"));
    return Status::Ok();
  }
};

Status Infer(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  Shape out = x;
  if (x.known_rank() && x.rank() > 0) out.erase(x.rank() - 1);
  ctx.SetOut("Out", out, ctx.InDType("X"));
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(dot) {
  op.Doc("inner product along the last axis")
      .Input("X")
      .Input("Y")
      .Output("Out")
      .InferShape(&Infer);
  op.Kernels<DotKernel, float, double, int32_t, int64_t, std::complex<float>,
             std::complex<double>>();
}

HEDDLE_OP(dot_grad) {
  op.Doc("gradient of dot").Input("X").Input("Y").Input("Out@GRAD").KernelKey("Out@GRAD");
  op.Output("X@GRAD", kOptional).Output("Y@GRAD", kOptional).InferShape(&GradLikeInputs);
  op.Kernels<DotGrad, float, double, int32_t, int64_t, std::complex<float>, std::complex<double>>();
}

HEDDLE_EXAMPLES(dot, R"(
example complex64 2x4
in X complex64 [2, 4] -1.1+1.2j 0.8+0.5j -0.7-1.5j -1.6+1.8j 0.9-0.6j 1.7-0.6j 1-1.6j 1.4+0.4j
in Y complex64 [2, 4] 1.6+1.6j 1.4-0.8j -0.8+0.5j 0.3-0.4j -1.6-1.3j -0.6+1.6j 0.6-0.9j -0-1.8j
out Out complex64 [2] -0.61000043+2.25j -2.4-1.5100001j

example float32 5x1
in X float32 [5, 1] -0.58 -0.11 0.12 0.35 -0.34
in Y float32 [5, 1] 0.728 0.489 0.608 0.369 0.25
out Out float32 [5] -0.42224 -0.05379 0.07296 0.12914999 -0.085

example float32 9
in X float32 [9] 0.3 -0.07 -0.81 0.48 -0.44 -0.25 0.67 -0.62 0.12
in Y float32 [9] 0.43 -0.11 0.69 0.03 0.29 0.16 0.56 -0.24 0.82
out Out float32 [] 0.047000006

example complex64 4
in X complex64 [4] 0.6+1.5j -1.5-1.2j 1.8-1.8j -0.1-0.4j
in Y complex64 [4] -1.1-0.4j 1.4-1.3j -1.2+1j 1-1.7j
out Out complex64 [] -4.86+2.1099997j
)")

HEDDLE_EXAMPLES(dot_grad, R"(
example complex64 4
in Out@GRAD complex64 [] 1+0j
in X complex64 [4] 0.2+0.1j 1.2-0.9j -2+0.8j 0.9+0.1j
in Y complex64 [4] 1-0.8j 0.3+0.1j 1.1+0j -1.3+1.8j
out Y@GRAD complex64 [4] 0.2-0.1j 1.2+0.9j -2-0.8j 0.9-0.1j

example float64 5
in Out@GRAD float64 [5] -0.5 -0.9 0.2 -0.7 0.4
in X float64 [5, 1] -0.11 -0.34 -0.58 0.35 0.12
in Y float64 [5, 1] 0.489 0.25 0.608 0.369 0.728
out X@GRAD float64 [5, 1] -0.2445 -0.225 0.1216 -0.2583 0.2912
out Y@GRAD float64 [5, 1] 0.055 0.30600000000000005 -0.11599999999999999 -0.24499999999999997 0.048

example float64 4
in Out@GRAD float64 [] 0.2
in X float64 [4] 0.281 0.816 0.638 0.459
in Y float64 [4] 1.41 2.6 2.2 1.81
out X@GRAD float64 [4] 0.282 0.52 0.44000000000000006 0.36200000000000004
)")
