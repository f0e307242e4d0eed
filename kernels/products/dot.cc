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
