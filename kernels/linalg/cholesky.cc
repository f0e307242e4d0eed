#include "core/interrupts.h"
#include "kernels/linalg/linalg_factor.h"

namespace heddle {
namespace {

template <typename T>
struct Cholesky {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    Tensor& out = ctx.Out("Out");
    const MatrixDims d = DimsOf(x.shape());
    const bool upper = ctx.Bool("upper");
    if (d.rows == 0) return Status::Ok();
    for (const int64_t i : Watched(d.batch)) {
      // The triangle that is asked for is the one that is read.
      Matrix<T> factor = MatrixAt<T>(x, i);
      if (upper) factor.transposeInPlace();
      if (!FactorCholesky<T>(factor))
        return InvalidArgument("matrix ", i, " of X is not positive definite");
      if (upper) factor.transposeInPlace();
      MutableMatrixAt<T>(out, i) = factor;
    }
    return Status::Ok();
  }
};

Status InferFactorGrad(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckMatrix(ctx, "Out", true));
  HEDDLE_RETURN_IF_ERROR(CheckSameDims(ctx, "Out", "Out@GRAD"));
  ctx.SetOut("X@GRAD", ctx.InShape("Out"), ctx.InDType("Out"));
  return Status::Ok();
}

// Murray (2016), "Differentiation of the Cholesky decomposition", for the lower factor.
template <typename T>
struct CholeskyGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor &out = ctx.In("Out"), &dout = ctx.In("Out@GRAD");
    Tensor& dx = ctx.Out("X@GRAD");
    const MatrixDims d = DimsOf(out.shape());
    const bool upper = ctx.Bool("upper");
    for (const int64_t i : Watched(d.batch)) {
      Matrix<T> l = MatrixAt<T>(out, i), dl = MatrixAt<T>(dout, i);
      if (upper) {
        l.transposeInPlace();
        dl.transposeInPlace();
      }
      Matrix<T> phi = Product<T>(Turned<T>(l), dl);
      KeepTriangle(phi, false, false);
      phi.diagonal() *= T(0.5);
      const Matrix<T> turned = l.transpose();
      SolveTriangle<T>(turned, true, false, phi);
      phi.transposeInPlace();
      SolveTriangle<T>(turned, true, false, phi);
      MutableMatrixAt<T>(dx, i) = T(0.5) * (phi + phi.transpose());
    }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(cholesky) {
  op.Doc("triangular factors of positive definite matrices")
      .Input("X")
      .Output("Out")
      .Attr("upper", false)
      .InferShape(SquareToSame)
      .Kernels<Cholesky, float, double>();
}

HEDDLE_OP(cholesky_grad) {
  op.Input("Out")
      .Input("Out@GRAD")
      .Output("X@GRAD")
      .Attr("upper", false)
      .InferShape(InferFactorGrad)
      .Kernels<CholeskyGrad, float, double>();
}

HEDDLE_EXAMPLES(cholesky, R"(
example float64 3x3, upper
attr upper BOOLEAN true
in X float64 [3, 3] 0.8232369999997473 0.6035139999997474 0.6887929999997474 0.6035139999997474
  0.8332559999997474 0.5038019999997474 0.6887929999997474 0.5038019999997474 0.6178849999997474
out Out float64 [3, 3] 0.907324087633381 0.6651581372361923 0.7591477063023432 0 0.6251565023801849
  -0.0018415776002711852 0 0 0.20390284109737403

example float64 2x3x3, upper
attr upper BOOLEAN true
in X float64 [2, 3, 3] 1.5348049999997473 1.2126059999997474 0.9223239999997475 1.2126059999997474
  1.0678259999997473 0.7988799999997472 0.9223239999997475 0.7988799999997472 0.7260799999997474
  0.31342799999974735 0.4667639999997474 0.33036999999974737 0.4667639999997474 0.7576979999997473
  0.5301599999997473 0.33036999999974737 0.5301599999997473 0.4756679999997474
out Out float64 [2, 3, 3] 1.2388724712413894 0.9787980830542451 0.7444866371722262 0
  0.33133112230679806 0.21180596071832117 0 0 0.3563114958514902 0.5598464075081194
  0.8337358135016306 0.5901082789299779 0 0.2501651320318672 0.15256160481690675 0 0
  0.32274630264921217

example float32 3x3, upper
attr upper BOOLEAN true
in X float32 [3, 3] 0.823237 0.603514 0.688793 0.603514 0.833256 0.503802 0.688793 0.503802 0.617885
out Out float32 [3, 3] 0.9073241 0.66515815 0.7591477 0 0.6251565 -0.0018415607 0 0 0.20390289
)")

HEDDLE_EXAMPLES(cholesky_grad, R"(
example float64 3x3, upper
gradient symmetric: X is symmetric, and Paddle gives either triangle half of the slope
attr upper BOOLEAN true
in Out float64 [3, 3] 0.9299102107191571 0.5854253386235371 0.9161723252193085 0 0.45887054045478265
  -0.047413141204743485 0 0 0.1214094911573728
in Out@GRAD float64 [3, 3] 0 0.4 -0.5 0.3 0.8 0.4 -0.6 -0.4 -0.5
out X@GRAD float64 [3, 3] -1.2379192698758132 -0.5680138522352918 1.6194371190333343
  -0.5680138522352918 0.8947564840808196 0.22308986826902416 1.6194371190333343 0.22308986826902416
  -2.0591470865811163

example float64 2x3x3
gradient symmetric: X is symmetric, and Paddle gives either triangle half of the slope
in Out float64 [2, 3, 3] 0.861644358189472 0 0 0.3061077316794181 0.30370554259978316 0
  0.842439218803692 0.023785676060208257 0.3974913888822389 1.1707655615022794 0 0
  1.0062065700738103 0.3798504157428891 0 0.6395362356226 0.3709366426266775 0.06953711586102847
in Out@GRAD float64 [2, 3, 3] 0.5 0.1 -0.4 0.6 -0 -0.8 -0.2 -0.2 -0.3 -0.8 -0.3 -0.2 0.9 -0.4 0.7 1
  -0.2 0.4
out X@GRAD float64 [2, 3, 3] -0.2860521498671478 0.6328638772629869 0.3593739327332178
  0.6328638772629869 0.023472878799539715 -0.2997116152657608 0.3593739327332178 -0.2997116152657608
  -0.3773666655315623 -1.1045441477747782 -0.06325742725086486 1.4961033245409576
  -0.06325742725086486 2.4733192249730873 -3.071929825540929 1.4961033245409576 -3.071929825540929
  2.8761618528974457

example float32 3x3, upper
gradient symmetric: X is symmetric, and Paddle gives either triangle half of the slope
attr upper BOOLEAN true
in Out float32 [3, 3] 0.9299102 0.5854253 0.9161723 0 0.45887053 -0.04741314 0 0 0.12140949
in Out@GRAD float32 [3, 3] 0 0.4 -0.5 0.3 0.8 0.4 -0.6 -0.4 -0.5
out X@GRAD float32 [3, 3] -1.2379194 -0.5680139 1.6194371 -0.5680139 0.8947565 0.22308987 1.6194371
  0.22308987 -2.0591471
)")
