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
