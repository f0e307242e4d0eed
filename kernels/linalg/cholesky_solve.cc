// cholesky_solve: systems with a Cholesky factor; leading axes are broadcast.
#include "core/interrupts.h"
#include "kernels/linalg/linalg_factor.h"
#include "kernels/linalg/solve_shapes.h"

namespace heddle {
namespace {

Status InferCholesky(ShapeContext& ctx) { return InferSolve(ctx, "Y", "X"); }

Status InferCholeskyGrad(ShapeContext& ctx) { return InferSolveGrad(ctx, "Y", "X"); }

// Solves (L L^T) z = b, the factor `f` holding L, or L^T if upper.
template <typename T>
Matrix<T> CholeskySolution(const Tensor& f, int64_t i, const ConstMatrixMap<T>& b, bool upper) {
  const Matrix<T> factor = MatrixAt<T>(f, i);
  Matrix<T> z = b;
  SolveTriangleInPlace<T>(factor, upper, upper, false, z);
  SolveTriangleInPlace<T>(factor, upper, !upper, false, z);
  return z;
}

template <typename T>
struct CholeskySolve {
  static Status Run(KernelContext& ctx) {
    const Tensor &f = ctx.In("Y"), &b = ctx.In("X");
    Tensor& out = ctx.Out("Out");
    if (out.numel() == 0) return Status::Ok();
    HEDDLE_ASSIGN_OR_RETURN(const BatchPairs pairs,
                            PairBatches(LeadingAxes(f.shape(), 2), LeadingAxes(b.shape(), 2)));
    for (const int64_t i : Watched(pairs.count())) {
      const auto k = static_cast<size_t>(i);
      MutableMatrixAt<T>(out, i) =
          CholeskySolution<T>(f, pairs.a[k], MatrixAt<T>(b, pairs.b[k]), ctx.Bool("upper"));
    }
    return Status::Ok();
  }
};

template <typename T>
struct CholeskySolveGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor &f = ctx.In("Y"), &b = ctx.In("X"), &out = ctx.In("Out"),
                 &dout = ctx.In("Out@GRAD");
    Tensor *df = ctx.OutOpt("Y@GRAD"), *db = ctx.OutOpt("X@GRAD");
    ZeroIfPresent(df);
    ZeroIfPresent(db);
    if (out.numel() == 0) return Status::Ok();
    const bool upper = ctx.Bool("upper");
    HEDDLE_ASSIGN_OR_RETURN(const BatchPairs pairs,
                            PairBatches(LeadingAxes(f.shape(), 2), LeadingAxes(b.shape(), 2)));
    for (const int64_t i : Watched(pairs.count())) {
      const auto k = static_cast<size_t>(i);
      const Matrix<T> slope = CholeskySolution<T>(f, pairs.a[k], MatrixAt<T>(dout, i), upper);
      if (db) MutableMatrixAt<T>(*db, pairs.b[k]) += slope;
      if (!df) continue;
      Matrix<T> both = Product<T>(slope, Turned<T>(MatrixAt<T>(out, i)));
      both += Matrix<T>(both.transpose());
      const auto factor = MatrixAt<T>(f, pairs.a[k]);
      Matrix<T> d = upper ? Product<T>(factor, both) : Product<T>(both, factor);
      KeepTriangle(d, upper, false);
      MutableMatrixAt<T>(*df, pairs.a[k]) -= d;
    }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(cholesky_solve) {
  op.Doc("solves A Z = X given the Cholesky factor Y of A")
      .Input("X")
      .Input("Y")
      .Output("Out")
      .Attr("upper", false)
      .InferShape(InferCholesky)
      .Kernels<CholeskySolve, float, double>();
}

HEDDLE_OP(cholesky_solve_grad) {
  op.Input("X")
      .Input("Y")
      .Input("Out")
      .Input("Out@GRAD")
      .Output("X@GRAD", kOptional)
      .Output("Y@GRAD", kOptional)
      .Attr("upper", false)
      .InferShape(InferCholeskyGrad)
      .Kernels<CholeskySolveGrad, float, double>();
}
