#include "core/interrupts.h"
#include "kernels/linalg/linalg_factor.h"

namespace heddle {
namespace {

template <typename T>
Matrix<T> Power(Matrix<T> base, int64_t n) {
  Matrix<T> result = Matrix<T>::Identity(base.rows(), base.cols());
  bool empty = true;
  for (; n > 0; n >>= 1) {
    if (n & 1) {
      result = empty ? base : Product<T>(result, base);
      empty = false;
    }
    if (n > 1) base = Product<T>(base, base);
  }
  return result;
}

template <typename T>
struct MatrixPower {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    Tensor& out = ctx.Out("Out");
    const int64_t n = ctx.Int("n");
    const MatrixDims d = DimsOf(x.shape());
    if (d.rows == 0) return Status::Ok();
    for (const int64_t i : Watched(d.batch)) {
      Matrix<T> base = MatrixAt<T>(x, i);
      if (n < 0) base = LuFactors<T>(std::move(base)).Inverse();
      MutableMatrixAt<T>(out, i) = Power<T>(std::move(base), std::abs(n));
    }
    return Status::Ok();
  }
};

// Gradient of base^n: the sum over i of (B^T)^i dY (B^T)^(n-1-i), doubling the number of terms with
// S(2k) = S(k) (B^T)^k + (B^T)^k S(k).
template <typename T>
Matrix<T> PowerGrad(const Matrix<T>& base, const Matrix<T>& dy, int64_t n) {
  if (n == 0) return Matrix<T>::Zero(base.rows(), base.cols());
  if (n == 1) return dy;
  const Matrix<T> turned = base.transpose();
  const Matrix<T> half = PowerGrad<T>(base, dy, n / 2), power = Power<T>(turned, n / 2);
  Matrix<T> twice = Product<T>(half, power);
  AddProduct(twice, power, half);
  if (n % 2 == 0) return twice;
  Matrix<T> sum = Product<T>(twice, turned);
  AddProduct(sum, Product<T>(power, power), dy);
  return sum;
}

template <typename T>
struct MatrixPowerGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("X"), &dout = ctx.In("Out@GRAD");
    Tensor& dx = ctx.Out("X@GRAD");
    const int64_t n = ctx.Int("n");
    const MatrixDims d = DimsOf(x.shape());
    if (d.rows == 0) return Status::Ok();
    for (const int64_t i : Watched(d.batch)) {
      Matrix<T> base = MatrixAt<T>(x, i);
      const Matrix<T> dy = MatrixAt<T>(dout, i);
      if (n < 0) base = LuFactors<T>(std::move(base)).Inverse();
      Matrix<T> slope = PowerGrad<T>(base, dy, std::abs(n));
      if (n < 0) slope = -Product<T>(Product<T>(Turned<T>(base), slope), Turned<T>(base));
      MutableMatrixAt<T>(dx, i) = slope;
    }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(matrix_power) {
  op.Doc("integer powers of square matrices")
      .Input("X")
      .Output("Out")
      .Attr("n", 1)
      .Contract("X: [..., N, N]; Out: like X")
      .Kernels<MatrixPower, float, double>();
}

HEDDLE_OP(matrix_power_grad) {
  op.Input("X")
      .Input("Out", kOptional | kNoBuffer)
      .Input("Out@GRAD")
      .Output("X@GRAD")
      .Attr("n", 1)
      .Contract("X: [..., N, N]; Out@GRAD: like X; X@GRAD: like X")
      .Kernels<MatrixPowerGrad, float, double>();
}
