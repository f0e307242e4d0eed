#include <algorithm>

#include "core/error.h"
#include "core/shapes.h"
#include "kernels/base/check.h"
#include "kernels/elementwise/binary_op.h"

namespace heddle {
namespace {

// Condition, X and Y have one shape.
Status CheckShapes(const KernelContext& ctx, int64_t n) {
  const Tensor& c = ctx.In("Condition");
  if (c.numel() == n && c.dtype() == DType::kBool) return Status::Ok();
  return InvalidArgument("input Condition is ", Name(c.dtype()), " ", c.shape().ToString(),
                         ", expected bool with ", n, " elements");
}

template <typename T>
struct Where {
  static Status Run(KernelContext& ctx) {
    const Tensor& xt = ctx.In("X");
    const Tensor& yt = ctx.In("Y");
    const int64_t n = xt.numel();
    HEDDLE_RETURN_IF_ERROR(CheckShapes(ctx, n));
    if (yt.numel() != n || yt.dtype() != xt.dtype())
      return InvalidArgument("input Y is ", Name(yt.dtype()), " ", yt.shape().ToString(),
                             ", expected that of X: ", Name(xt.dtype()), " ",
                             xt.shape().ToString());
    const bool* c = ctx.In("Condition").data<bool>();
    const T* x = xt.data<T>();
    const T* y = yt.data<T>();
    T* out = ctx.Out("Out").template mutable_data<T>();
    ctx.ParallelFor(n, kElementGrain, [=](int64_t begin, int64_t end) {
#pragma GCC ivdep
      for (int64_t i = begin; i < end; ++i) out[i] = c[i] ? x[i] : y[i];
    });
    return Status::Ok();
  }
};

template <typename T>
struct WhereGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& dt = ctx.In("Out@GRAD");
    const int64_t n = dt.numel();
    HEDDLE_RETURN_IF_ERROR(CheckShapes(ctx, n));
    const bool* c = ctx.In("Condition").data<bool>();
    const T* dout = dt.data<T>();
    Tensor* dxt = ctx.OutOpt("X@GRAD");
    Tensor* dyt = ctx.OutOpt("Y@GRAD");
    HEDDLE_RETURN_IF_ERROR(CheckDType(kDTypeOf<T>, {dxt, dyt}));
    for (const Tensor* t : {dxt, dyt})
      if (t != nullptr && t->numel() != n)
        return InvalidArgument("Out@GRAD has shape ", dt.shape().ToString(), ", X and Y have ",
                               t->shape().ToString());
    T* dx = dxt != nullptr ? dxt->mutable_data<T>() : nullptr;
    T* dy = dyt != nullptr ? dyt->mutable_data<T>() : nullptr;
    ctx.ParallelFor(n, kElementGrain, [=](int64_t begin, int64_t end) {
      if (dx != nullptr)
        for (int64_t i = begin; i < end; ++i) dx[i] = c[i] ? dout[i] : T(0);
      if (dy != nullptr)
        for (int64_t i = begin; i < end; ++i) dy[i] = c[i] ? T(0) : dout[i];
    });
    return Status::Ok();
  }
};

Status InferWhere(ShapeContext& ctx) {
  ctx.SetOut("Out", ctx.InShape("X"), ctx.InDType("X"));
  ctx.ShareLoD("X", "Out");
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(where) {
  op.Doc("x where the condition holds, else y")
      .Input("Condition")
      .Input("X")
      .Input("Y")
      .Output("Out");
  op.Inplace("X", "Out").Inplace("Y", "Out").KernelKey("X").InferShape(&InferWhere);
  op.Kernels<Where, float, double, int32_t, int64_t, bool, int16_t, uint8_t, int8_t, float16,
             bfloat16, std::complex<float>, std::complex<double>>();
}

HEDDLE_OP(where_grad) {
  op.Doc("gradient of where").Input("Condition").Input("X", kNoBuffer).Input("Y", kNoBuffer);
  op.Input("Out@GRAD").Output("X@GRAD", kOptional).Output("Y@GRAD", kOptional);
  op.KernelKey("Out@GRAD").InferShape(&GradLikeInputs);
  op.Kernels<WhereGrad, float, double, int32_t, int64_t, float16, bfloat16, std::complex<float>,
             std::complex<double>>();
}
