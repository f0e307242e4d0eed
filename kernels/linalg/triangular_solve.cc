// triangular_solve and cholesky_solve: systems with a triangular factor, batches broadcast.
#include "kernels/linalg/linalg_factor.h"

namespace heddle {
namespace {

// Out of a system with coefficients `a` [.., n, n] and right sides `b` [.., n, k].
Status InferSolve(ShapeContext& ctx, Key a, Key b) {
  HEDDLE_RETURN_IF_ERROR(CheckMatrix(ctx, a, true));
  HEDDLE_RETURN_IF_ERROR(CheckMatrix(ctx, b, false));
  const Shape &sa = ctx.InShape(a), &sb = ctx.InShape(b);
  if (!sa.known_rank() || !sb.known_rank()) return ctx.Defer();
  if (sa.dim(-1) >= 0 && sb.dim(-2) >= 0 && sa.dim(-1) != sb.dim(-2))
    return InvalidArgument(a.name, " ", sa.ToString(), " and ", b.name, " ", sb.ToString(),
                           " do not fit each other");
  if (ctx.InDType(a) != ctx.InDType(b))
    return InvalidArgument(a.name, " and ", b.name, " must have the same dtype");
  HEDDLE_ASSIGN_OR_RETURN(Shape out, BroadcastShape(LeadingAxes(sa, 2), LeadingAxes(sb, 2), -1));
  out.push_back(sb.dim(-2));
  out.push_back(sb.dim(-1));
  ctx.SetOut("Out", out, ctx.InDType(a));
  return Status::Ok();
}
Status InferTriangular(ShapeContext& ctx) { return InferSolve(ctx, "X", "Y"); }
Status InferCholesky(ShapeContext& ctx) { return InferSolve(ctx, "Y", "X"); }

// Solves T z = z in place, T being a triangle of `m`, transposed if asked for.
template <typename T>
void SolveInPlace(const Matrix<T>& m, bool upper, bool transpose, bool unit, Matrix<T>& z) {
  if (!transpose) return SolveTriangle<T>(m, upper, unit, z);
  SolveTriangle<T>(Matrix<T>(m.transpose()), !upper, unit, z);
}

template <typename T>
Matrix<T> Solution(const Tensor& a, int64_t i, const ConstMatrixMap<T>& b, bool upper,
                   bool transpose, bool unit) {
  Matrix<T> z = b;
  SolveInPlace<T>(MatrixAt<T>(a, i), upper, transpose, unit, z);
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
    for (int64_t i = 0; i < pairs.count(); ++i) {
      const auto k = static_cast<size_t>(i);
      MutableMatrixAt<T>(out, i) =
          Solution<T>(a, pairs.a[k], MatrixAt<T>(b, pairs.b[k]), ctx.Bool("upper"),
                      ctx.Bool("transpose"), ctx.Bool("unitriangular"));
    }
    return Status::Ok();
  }
};

Status InferGrad(ShapeContext& ctx, Key a, Key b) {
  HEDDLE_RETURN_IF_ERROR(CheckMatrix(ctx, a, true));
  HEDDLE_RETURN_IF_ERROR(CheckMatrix(ctx, b, false));
  HEDDLE_RETURN_IF_ERROR(CheckSameDims(ctx, "Out", "Out@GRAD"));
  const Shape &sa = ctx.InShape(a), &sb = ctx.InShape(b), &out = ctx.InShape("Out");
  if (sa.is_static() && sb.is_static() && out.is_static()) {
    HEDDLE_ASSIGN_OR_RETURN(Shape want, BroadcastShape(LeadingAxes(sa, 2), LeadingAxes(sb, 2), -1));
    want.push_back(sb.dim(-2));
    want.push_back(sb.dim(-1));
    if (!(want == out) || sa.dim(-1) != sb.dim(-2))
      return InvalidArgument("Out ", out.ToString(), " does not fit ", a.name, " ", sa.ToString(),
                             " and ", b.name, " ", sb.ToString());
  }
  SetOutsLike(ctx, {{"X", "X@GRAD"}, {"Y", "Y@GRAD"}});
  return Status::Ok();
}
Status InferTriangularGrad(ShapeContext& ctx) { return InferGrad(ctx, "X", "Y"); }
Status InferCholeskyGrad(ShapeContext& ctx) { return InferGrad(ctx, "Y", "X"); }

void ZeroIf(Tensor* t) {
  if (t != nullptr && t->numel() > 0) std::memset(t->mutable_raw(), 0, t->bytes());
}

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
    ZeroIf(da);
    ZeroIf(db);
    if (out.numel() == 0) return Status::Ok();
    const bool upper = ctx.Bool("upper"), transpose = ctx.Bool("transpose"),
               unit = ctx.Bool("unitriangular");
    HEDDLE_ASSIGN_OR_RETURN(const BatchPairs pairs,
                            PairBatches(LeadingAxes(a.shape(), 2), LeadingAxes(b.shape(), 2)));
    for (int64_t i = 0; i < pairs.count(); ++i) {
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

// Solves (L L^T) z = b, the factor `f` holding L, or L^T if upper.
template <typename T>
Matrix<T> CholeskySolution(const Tensor& f, int64_t i, const ConstMatrixMap<T>& b, bool upper) {
  const Matrix<T> factor = MatrixAt<T>(f, i);
  Matrix<T> z = b;
  SolveInPlace<T>(factor, upper, upper, false, z);
  SolveInPlace<T>(factor, upper, !upper, false, z);
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
    for (int64_t i = 0; i < pairs.count(); ++i) {
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
    ZeroIf(df);
    ZeroIf(db);
    if (out.numel() == 0) return Status::Ok();
    const bool upper = ctx.Bool("upper");
    HEDDLE_ASSIGN_OR_RETURN(const BatchPairs pairs,
                            PairBatches(LeadingAxes(f.shape(), 2), LeadingAxes(b.shape(), 2)));
    for (int64_t i = 0; i < pairs.count(); ++i) {
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
