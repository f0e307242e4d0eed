// determinant and slogdeterminant.
#include "core/interrupts.h"
#include "kernels/linalg/linalg_factor.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

template <typename T>
struct Determinant {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("Input");
    T* out = ctx.Out("Out").template mutable_data<T>();
    const MatrixDims d = DimsOf(x.shape());
    for (int64_t i = 0; i < d.batch; ++i)
      out[i] = d.rows == 0 ? T(1) : LuFactors<T>(MatrixAt<T>(x, i)).Determinant();
    return Status::Ok();
  }
};

template <typename T>
struct SlogDeterminant {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("Input");
    T* out = ctx.Out("Out").template mutable_data<T>();
    const MatrixDims d = DimsOf(x.shape());
    for (const int64_t i : Watched(d.batch)) {
      T sign = 1, log = 0;
      if (d.rows > 0) {
        const LuFactors<T> lu(MatrixAt<T>(x, i));
        sign = lu.sign();
        for (Eigen::Index k = 0; k < d.rows; ++k) {
          const T v = lu.packed()(k, k);
          sign *= v < T(0) ? T(-1) : v > T(0) ? T(1) : T(0);
          log += std::log(std::abs(v));
        }
      }
      out[i] = sign;
      out[d.batch + i] = log;
    }
    return Status::Ok();
  }
};

Status InferDeterminantGrad(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckMatrix(ctx, "Input", true));
  HEDDLE_RETURN_IF_ERROR(CheckSameCount(ctx, "Out", "Out@GRAD"));
  const Shape &x = ctx.InShape("Input"), &out = ctx.InShape("Out");
  if (x.is_static() && out.is_static()) {
    const int64_t batch = DimsOf(x).batch;
    if (out.numel() != batch && out.numel() != 2 * batch)
      return InvalidArgument("Out ", out.ToString(), " does not fit Input ", x.ToString());
  }
  return GradLikeInputs(ctx);
}
// factor * inv(X)^T, and zeros where X is singular.
template <typename T>
void ScaledInverse(const Tensor& x, int64_t i, T factor, Tensor& dx) {
  const LuFactors<T> lu(MatrixAt<T>(x, i));
  auto to = MutableMatrixAt<T>(dx, i);
  if (lu.packed().diagonal().cwiseAbs().minCoeff() == T(0))
    to.setZero();
  else
    to = factor * lu.Inverse().transpose();
}

template <typename T>
struct DeterminantGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("Input");
    const T* out = ctx.In("Out").template data<T>();
    const T* dout = ctx.In("Out@GRAD").template data<T>();
    const MatrixDims d = DimsOf(x.shape());
    for (int64_t i = 0; i < d.batch && d.rows > 0; ++i)
      ScaledInverse(x, i, dout[i] * out[i], ctx.Out("Input@GRAD"));
    return Status::Ok();
  }
};

template <typename T>
struct SlogDeterminantGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("Input");
    const T* dout = ctx.In("Out@GRAD").template data<T>();
    const MatrixDims d = DimsOf(x.shape());
    for (int64_t i = 0; i < d.batch && d.rows > 0; ++i)
      ScaledInverse(x, i, dout[d.batch + i], ctx.Out("Input@GRAD"));
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(determinant) {
  op.Doc("determinants of square matrices")
      .Input("Input")
      .Output("Out")
      .Contract("Input: [..., N, N]; Out: as Input [...]")
      .Kernels<Determinant, float, double>()
      .Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}

HEDDLE_OP(determinant_grad) {
  op.Input("Input")
      .Input("Out")
      .Input("Out@GRAD")
      .Output("Input@GRAD")
      .InferShape(InferDeterminantGrad)
      .Kernels<DeterminantGrad, float, double>();
}

HEDDLE_OP(slogdeterminant) {
  op.Doc("sign and logarithm of the absolute value of determinants")
      .Input("Input")
      .Output("Out")
      .Contract("Input: [..., N, N]; Out: as Input [2, ...]")
      .Kernels<SlogDeterminant, float, double>();
}

HEDDLE_OP(slogdeterminant_grad) {
  op.Input("Input")
      .Input("Out", kNoBuffer)
      .Input("Out@GRAD")
      .Output("Input@GRAD")
      .Contract(
          "Input: [..., N, N]; Out: [2, ...]; Out@GRAD: as Input count Out; Input@GRAD: like Input")
      .Kernels<SlogDeterminantGrad, float, double>();
}
