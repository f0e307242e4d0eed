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

Status InferPowerGrad(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckMatrix(ctx, "X", true));
  HEDDLE_RETURN_IF_ERROR(CheckSameDims(ctx, "X", "Out@GRAD"));
  return GradLikeInputs(ctx);
}

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
      .InferShape(SquareToSame)
      .Kernels<MatrixPower, float, double>();
}

HEDDLE_OP(matrix_power_grad) {
  op.Input("X")
      .Input("Out", kOptional | kNoBuffer)
      .Input("Out@GRAD")
      .Output("X@GRAD")
      .Attr("n", 1)
      .InferShape(InferPowerGrad)
      .Kernels<MatrixPowerGrad, float, double>();
}

HEDDLE_EXAMPLES(matrix_power, R"(
example float32 4x4, n 2
attr n INT 2
in X float32 [4, 4] 0.362 0.189 0.823 0.592 0.419 0.938 0.304 0.65 0.535 0.765 0.131 0.707 0.074
  0.88 0.477 0.247
out Out float32 [4, 4] 0.694348 1.396255 0.745579 1.0652391 0.75544 1.7635951 0.97986305 1.233226
  0.63660794 1.54106 1.0272651 1.081216 0.668981 1.421691 0.50872797 1.014056

example float64 4x4, n 1
attr n INT 1
in X float64 [4, 4] 0.765 0.189 0.535 0.88 0.707 0.247 0.074 0.304 0.131 0.823 0.592 0.419 0.938
  0.65 0.477 0.362
out Out float64 [4, 4] 0.765 0.189 0.535 0.88 0.707 0.247 0.074 0.304 0.131 0.823 0.592 0.419 0.938
  0.65 0.477 0.362

example float32 4x4, n 32
attr n INT 32
in X float32 [4, 4] 0.535 0.304 0.247 0.131 0.707 0.419 0.88 0.074 0.938 0.592 0.765 0.362 0.823
  0.477 0.189 0.65
out Out float32 [4, 4] 266243490 159091260 193008450 91685590 511943170 305906780 371124060
  176296580 621383230 371301660 450460700 213984200 456978720 273063260 331278530 157368580

example float64 4x4, n -3
attr n INT -3
in X float64 [4, 4] 0.189 0.765 0.304 0.247 0.074 0.419 0.707 0.65 0.592 0.362 0.535 0.477 0.823
  0.88 0.938 0.131
out Out float64 [4, 4] 13.479627720162012 3.267687439110332 -3.4017852518864844 -7.8298727704795805
  -12.498482815382479 7.374557339675028 -6.480235746570533 6.627718778417304 -5.3861259518558455
  -8.474220490154305 3.797014873988494 6.963838673740903 12.075661353864156 -0.5005033122676499
  6.840936497779928 -11.750064309582093
)")

HEDDLE_EXAMPLES(matrix_power_grad, R"(
example float64 4x4, n 2
attr n INT 2
in Out float64 [4, 4] 0.694348 1.396255 0.745579 1.0652389999999998 0.75544 1.763595
  0.9798629999999999 1.233226 0.636608 1.5410599999999999 1.0272649999999999 1.081216 0.668981
  1.421691 0.508728 1.014056
in Out@GRAD float64 [4, 4] 0.8 0 -0.9 -0.2 0.4 -0.7 -0.9 0.4 0.8 -0.7 -1 0.2 0.6 -0.6 -0 -0.3
in X float64 [4, 4] 0.362 0.189 0.823 0.592 0.419 0.938 0.304 0.65 0.535 0.765 0.131 0.707 0.074
  0.88 0.477 0.247
out X@GRAD float64 [4, 4] 0.3601000000000001 -0.7806 -1.0692 -0.2395 1.1750000000000003
  -2.2226999999999997 -1.9359000000000002 -0.6905000000000001 0.6237000000000001 -1.0861 -1.2424
  -1.1442999999999999 1.3736 -1.6045000000000003 -2.1748999999999996 -0.34880000000000005

example float64 4x4, n -1
attr n INT -1
in Out float64 [4, 4] 5.041446100887709 8.788396576568186 -13.032216193667354 5.241371501884997
  -0.911307544347282 -18.26590814310174 24.056926323873295 -11.134690520527863 -3.2144984341326053
  2.6459790232553315 -0.9094316231379654 0.8530939918867999 -4.779809597424414 1.5075350251517814
  -0.8888574651173131 2.825175181190513
in Out@GRAD float64 [4, 4] 0.8 0 -0.9 -0.2 0.4 -0.7 -0.9 0.4 0.8 -0.7 -1 0.2 0.6 -0.6 -0 -0.3
in X float64 [4, 4] 0.535 0.304 0.247 0.131 0.707 0.419 0.88 0.074 0.938 0.592 0.765 0.362 0.823
  0.477 0.189 0.65
out X@GRAD float64 [4, 4] -45.15898918615261 109.13768818307697 -20.883319971659194
  -15.94478868148446 21.79878827811585 -55.915578866241134 -4.694001541535313 28.624002974010175
  -33.88059902478982 65.8265061048306 16.12651055146831 -29.0421624492616 31.366270513466326
  -73.44868775575532 1.5653675118896047 23.236635741128133

example float32 4x4, n 2
attr n INT 2
in Out float32 [4, 4] 0.694348 1.396255 0.745579 1.065239 0.75544 1.763595 0.979863 1.233226
  0.636608 1.54106 1.027265 1.081216 0.668981 1.421691 0.508728 1.014056
in Out@GRAD float32 [4, 4] 0.8 0 -0.9 -0.2 0.4 -0.7 -0.9 0.4 0.8 -0.7 -1 0.2 0.6 -0.6 -0 -0.3
in X float32 [4, 4] 0.362 0.189 0.823 0.592 0.419 0.938 0.304 0.65 0.535 0.765 0.131 0.707 0.074
  0.88 0.477 0.247
out X@GRAD float32 [4, 4] 0.36009997 -0.78059995 -1.0692 -0.23949997 1.175 -2.2227 -1.9359
  -0.69049996 0.62369996 -1.0861 -1.2423999 -1.1443 1.3736001 -1.6045 -2.1749 -0.34880006
)")
