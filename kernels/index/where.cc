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

HEDDLE_EXAMPLES(where, R"(
example bool 4
in Condition bool [4] 1 0 1 1
in X float64 [4] 1.8 -1.37 3.38 0.21
in Y float64 [4] 1.62 -1.44 3.15 0.09
out Out float64 [4] 1.8 -1.44 3.38 0.21

example bool 4x2
in Condition bool [4, 2] 0 0 0 1 0 1 0 1
in X float64 [4, 2] 1.63 -2.77 -3.87 -1.67 2.73 -0.57 0.53 3.83
in Y float64 [4, 2] 2.78 -1.63 -2.73 -3.84 -0.53 1.68 0.58 3.89
out Out float64 [4, 2] 2.78 -1.63 -2.73 -1.67 -0.53 -0.57 0.58 3.83

example bool scalar
in Condition bool [] 1
in X float64 [] -0.62
in Y float64 [] 3.98
out Out float64 [] -0.62

example bool 2x4
in Condition bool [2, 4] 0*8
in X float32 [2, 4] 0*8
in Y float32 [2, 4] 1 4 5 1 5 2 5 3
out Out float32 [2, 4] 1 4 5 1 5 2 5 3

example bool 4, no. 2
in Condition bool [4] 1 0 1 1
in X int32 [4] 3 3 2 -1
in Y int32 [4] -1 0 3 2
out Out int32 [4] 3 0 2 -1

example bool 4, no. 3
in Condition bool [4] 1 0 1 1
in X int64 [4] 3 3 2 -1
in Y int64 [4] -1 0 3 2
out Out int64 [4] 3 0 2 -1
)")

HEDDLE_EXAMPLES(where_grad, R"(
example bool scalar
in Condition bool [] 1
in Out@GRAD float64 [] 0.7
in X float64 [] -0.62
in Y float64 [] 3.98
out X@GRAD float64 [] 0.7
out Y@GRAD float64 [] 0

example bool 4x2
in Condition bool [4, 2] 1 0 1 1 0*4
in Out@GRAD float64 [4, 2] -0.4 0.1 -0.5 -0.6 -0 0.6 0.6 0.6
in X float64 [4, 2] 2.75 3.85 -1.66 -2.77 0.54 -3.87 1.64 -0.56
in Y float64 [4, 2] -0.53 -1.63 -2.73 2.76 -3.83 3.86 0.57 1.67
out X@GRAD float64 [4, 2] -0.4 0 -0.5 -0.6 -0 0 0 0
out Y@GRAD float64 [4, 2] -0 0.1 -0 -0 -0 0.6 0.6 0.6

example bool 1x1x4x2
in Condition bool [1, 1, 4, 2] 0 0 0 1 0 1 0 1
in Out@GRAD float64 [1, 1, 4, 2] -0.4 0.1 -0.5 -0.6 -0 0.6 0.6 0.6
in X float64 [1, 1, 4, 2] 0.32 -0.26 -0.41 -0.12 0.46 0.03 0.17 0.61
in Y float64 [1, 1, 4, 2] 5 -3 -4.9 -6.9 -1 3 1 7
out X@GRAD float64 [1, 1, 4, 2] -0 0 -0 -0.6 -0 0.6 0 0.6
out Y@GRAD float64 [1, 1, 4, 2] -0.4 0.1 -0.5 -0 -0 0 0.6 0

example bool 4x2, no. 2
in Condition bool [4, 2] 1 0 1 1 0*4
in Out@GRAD float32 [4, 2] -0.4 0.1 -0.5 -0.6 -0 0.6 0.6 0.6
in X float32 [4, 2] 2.75 3.85 -1.66 -2.77 0.54 -3.87 1.64 -0.56
in Y float32 [4, 2] -0.53 -1.63 -2.73 2.76 -3.83 3.86 0.57 1.67
out X@GRAD float32 [4, 2] -0.4 0 -0.5 -0.6 -0 0 0 0
out Y@GRAD float32 [4, 2] -0 0.1 -0 -0 -0 0.6 0.6 0.6
)")
