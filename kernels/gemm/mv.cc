// mv: a matrix times a vector.
#include "core/error.h"
#include "core/interrupts.h"
#include "core/shapes.h"
#include "kernels/gemm/gemm.h"

namespace heddle {
namespace {

Status CheckMv(const Tensor& x, const Tensor& v) {
  if (x.rank() == 2 && v.rank() == 1 && x.dim(1) == v.dim(0) && x.dtype() == v.dtype())
    return Status::Ok();
  return InvalidArgument("X ", x.shape().ToString(), " and Vec ", v.shape().ToString(),
                         " are not a matrix and a vector that fit");
}

template <typename T>
struct Mv {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    const Tensor& v = ctx.In("Vec");
    HEDDLE_RETURN_IF_ERROR(CheckMv(x, v));
    ParallelGemm(ctx, GemmDims::Dense(x.dim(0), 1, x.dim(1)), T(1), x.data<T>(), v.data<T>(), T(0),
                 ctx.Out("Out").template mutable_data<T>());
    return Status::Ok();
  }
};

template <typename T>
struct MvGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    const Tensor& v = ctx.In("Vec");
    const Tensor& dout = ctx.In("Out@GRAD");
    HEDDLE_RETURN_IF_ERROR(CheckMv(x, v));
    if (dout.numel() != x.dim(0) || dout.dtype() != x.dtype())
      return InvalidArgument("Out@GRAD ", dout.shape().ToString(), " does not fit X");
    const int64_t m = x.dim(0), n = x.dim(1);
    const T* g = dout.data<T>();
    if (Tensor* dx = ctx.OutOpt("X@GRAD"))
      for (const int64_t i : Watched(m))
        for (const auto part : Stretches(n))
          for (int64_t j = part.begin; j < part.end; ++j)
            dx->mutable_data<T>()[i * n + j] = g[i] * v.data<T>()[j];
    if (Tensor* dv = ctx.OutOpt("Vec@GRAD"))
      ParallelGemm(ctx, GemmDims::Dense(n, 1, m, true, false), T(1), x.data<T>(), g, T(0),
                   dv->mutable_data<T>());
    return Status::Ok();
  }
};

Status InferMv(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  if (x.known_rank() && x.rank() != 2)
    return InvalidArgument("X has shape ", x.ToString(), ", expected a matrix");
  ctx.SetOut("Out", Shape{x.known_rank() ? x[0] : -1}, ctx.InDType("X"));
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(mv) {
  op.Doc("matrix times vector").Input("X").Input("Vec").Output("Out").InferShape(&InferMv);
  op.Kernels<Mv, float, double>();
}

HEDDLE_OP(mv_grad) {
  op.Doc("gradient of mv").Input("X").Input("Vec").Input("Out@GRAD").KernelKey("Out@GRAD");
  op.Output("X@GRAD", kOptional).Output("Vec@GRAD", kOptional).InferShape(&GradLikeInputs);
  op.Kernels<MvGrad, float, double>();
}

HEDDLE_EXAMPLES(mv, R"(
example float64 2x4
in Vec float64 [4] 0.414 0.221 0.799 0.607
in X float64 [2, 4] 0.555 0.777 0.111 0.444 0.222 0.666 0.888 0.333
out Out float64 [2] 0.759684 1.1507370000000001

example float32 4x3
in Vec float32 [3] -0.92 -0.33 -0.63
in X float32 [4, 3] -0.51 0.55 0.4 -0.06 -0.66 -0.21 0.09 0.85 -0.81 0.7 0.25 -0.36
out Out float32 [4] 0.035699964 0.40530002 0.14699996 -0.49969995
)")

HEDDLE_EXAMPLES(mv_grad, R"(
example float64 4x3
in Out@GRAD float64 [4] -0.2 0.3 0.9 -0.8
in Vec float64 [3] -0.77 -0.29 -0.53
in X float64 [4, 3] -0.54 0.51 0.36 -0.09 -0.69 -0.24 0.06 0.81 -0.84 0.66 0.21 -0.39
out Vec@GRAD float64 [3] -0.393 0.2520000000000001 -0.588
out X@GRAD float64 [4, 3] 0.15400000000000003 0.057999999999999996 0.10600000000000001
  -0.23099999999999998 -0.087 -0.159 -0.6930000000000001 -0.261 -0.47700000000000004
  0.6160000000000001 0.23199999999999998 0.42400000000000004

example float32 4x3
in Out@GRAD float32 [4] -0.2 0.3 0.9 -0.8
in Vec float32 [3] -0.77 -0.29 -0.53
in X float32 [4, 3] -0.54 0.51 0.36 -0.09 -0.69 -0.24 0.06 0.81 -0.84 0.66 0.21 -0.39
out Vec@GRAD float32 [3] -0.39300007 0.25199997 -0.58799994
out X@GRAD float32 [4, 3] 0.154 0.058 0.106 -0.231 -0.087 -0.159 -0.69299996 -0.26099998 -0.47699997
  0.616 0.232 0.424
)")
