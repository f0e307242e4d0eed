// triangular_solve: systems with a triangular matrix; leading axes are broadcast.
#include "core/interrupts.h"
#include "kernels/linalg/linalg_factor.h"
#include "kernels/linalg/solve_shapes.h"

namespace heddle {
namespace {

Status InferTriangular(ShapeContext& ctx) { return InferSolve(ctx, "X", "Y"); }

template <typename T>
Matrix<T> Solution(const Tensor& a, int64_t i, const ConstMatrixMap<T>& b, bool upper,
                   bool transpose, bool unit) {
  Matrix<T> z = b;
  SolveTriangleInPlace<T>(MatrixAt<T>(a, i), upper, transpose, unit, z);
  return z;
}

template <typename T>
struct TriangularSolve {
  static Status Run(KernelContext& ctx) {
    const Tensor &a = ctx.In("X"), &b = ctx.In("Y");
    Tensor& out = ctx.Out("Out");
    if (out.numel() == 0) return Status::Ok();
    HEDDLE_ASSIGN_OR_RETURN(const BatchPairs pairs,
                            PairBatches(LeadingAxes(a.shape(), 2), LeadingAxes(b.shape(), 2)));
    for (const int64_t i : Watched(pairs.count())) {
      const auto k = static_cast<size_t>(i);
      MutableMatrixAt<T>(out, i) =
          Solution<T>(a, pairs.a[k], MatrixAt<T>(b, pairs.b[k]), ctx.Bool("upper"),
                      ctx.Bool("transpose"), ctx.Bool("unitriangular"));
    }
    return Status::Ok();
  }
};

Status InferTriangularGrad(ShapeContext& ctx) { return InferSolveGrad(ctx, "X", "Y"); }

// Clears what lies below (upper) or above (lower) the given diagonal.
template <typename T>
void CutAtDiagonal(Matrix<T>& m, bool upper, Eigen::Index diagonal) {
  for (Eigen::Index r = 0; r < m.rows(); ++r)
    for (Eigen::Index c = 0; c < m.cols(); ++c)
      if (upper ? c < r + diagonal : c > r + diagonal) m(r, c) = 0;
}

template <typename T>
struct TriangularSolveGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor &a = ctx.In("X"), &b = ctx.In("Y"), &out = ctx.In("Out"),
                 &dout = ctx.In("Out@GRAD");
    Tensor *da = ctx.OutOpt("X@GRAD"), *db = ctx.OutOpt("Y@GRAD");
    ZeroIfPresent(da);
    ZeroIfPresent(db);
    if (out.numel() == 0) return Status::Ok();
    const bool upper = ctx.Bool("upper"), transpose = ctx.Bool("transpose"),
               unit = ctx.Bool("unitriangular");
    HEDDLE_ASSIGN_OR_RETURN(const BatchPairs pairs,
                            PairBatches(LeadingAxes(a.shape(), 2), LeadingAxes(b.shape(), 2)));
    for (const auto part : Stretches(pairs.count()))
      for (int64_t i = part.begin; i < part.end; ++i) {
        const auto k = static_cast<size_t>(i);
        const Matrix<T> slope =
            Solution<T>(a, pairs.a[k], MatrixAt<T>(dout, i), upper, !transpose, unit);
        if (db) MutableMatrixAt<T>(*db, pairs.b[k]) += slope;
        if (!da) continue;
        const auto solution = MatrixAt<T>(out, i);
        Matrix<T> outer = transpose ? Product<T>(solution, Turned<T>(slope))
                                    : Product<T>(slope, Turned<T>(solution));
        // With a unit diagonal Paddle keeps what lies on or beyond the diagonal above the main one,
        // for the lower triangle too, which then holds two diagonals more than X's own triangle.
        CutAtDiagonal(outer, upper, unit ? 1 : 0);
        MutableMatrixAt<T>(*da, pairs.a[k]) -= outer;
      }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(triangular_solve) {
  op.Doc("solves X Z = Y for triangular X")
      .Input("X")
      .Input("Y")
      .Output("Out")
      .Attr("upper", true)
      .Attr("transpose", false)
      .Attr("unitriangular", false)
      .InferShape(InferTriangular)
      .Kernels<TriangularSolve, float, double>();
}

HEDDLE_OP(triangular_solve_grad) {
  op.Input("X")
      .Input("Y")
      .Input("Out")
      .Input("Out@GRAD")
      .Output("X@GRAD", kOptional)
      .Output("Y@GRAD", kOptional)
      .Attr("upper", true)
      .Attr("transpose", false)
      .Attr("unitriangular", false)
      .InferShape(InferTriangularGrad)
      .Kernels<TriangularSolveGrad, float, double>();
}
