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
      .Contract("X: [..., N, N]; Out: like X")
      .Kernels<Cholesky, float, double>();
}

HEDDLE_OP(cholesky_grad) {
  op.Input("Out")
      .Input("Out@GRAD")
      .Output("X@GRAD")
      .Attr("upper", false)
      .Contract("Out: [..., N, N]; Out@GRAD: like Out; X@GRAD: like Out")
      .Kernels<CholeskyGrad, float, double>();
}
