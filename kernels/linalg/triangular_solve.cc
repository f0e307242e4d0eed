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

HEDDLE_EXAMPLES(triangular_solve, R"(
example float64 3x3
in X float64 [3, 3] 0.389 0.737 0.65 0.302 0.563 0.91 0.215 0.823 0.476
in Y float64 [3, 2] 0.446 0.575 0.704 0.833 0.188 0.317
out Out float64 [3, 2] -0.6730305577508688 -0.3984471851999053 0.6120572562950579
  0.40314491693657917 0.39495798319327735 0.6659663865546219

example float64 3x3x4, transpose, no upper
attr transpose BOOLEAN true
attr upper BOOLEAN false
in X float64 [3, 3] 0.497 0.3 0.399 0.595 0.104 0.693 0.791 0.889 0.202
in Y float64 [3, 3, 4] 0.783 0.513 0.81 0.945 0.351 0.756 0.675 0.297 0.054 0.027 0.486 0.27 0.432
  0.621 0.378 0.405 0.837 0.702 0.648 0.972 0.108 0.324 0.729 0.594 0.459 0.189 0.135 0.864 0.891
  0.918 0.081 0.54 0.567 0.216 0.243 0.162
out Out float64 [3, 3, 4] -0.154785529628647 -6.515279701820978 14.651892313515514
  10.033803353249732 1.0898705255140895 6.1266660319878135 -14.075780654988574 -8.56987814166032
  0.26732673267326734 0.13366336633663367 2.405940594059406 1.3366336633663367 -4.145296953081779
  7.030039337318659 24.489630375551094 15.038633744584795 3.477817974105102 -6.960776846915462
  -24.618478674790556 -15.790270373191165 0.5346534653465347 1.603960396039604 3.608910891089109
  2.9405940594059405 14.924579751931232 -0.9461425828389987 9.735354530074579 2.453051707043479
  -15.426551789794363 -0.31359482102056385 -9.50423648134044 -1.6630807311500384 2.8069306930693068
  1.0693069306930694 1.202970297029703 0.801980198019802

example float64 4x4, unitriangular
attr unitriangular BOOLEAN true
in X float64 [4, 4] 0.419 0.074 0.592 0.823 0.189 0.707 0.247 0.938 0.88 0.362 0.535 0.131 0.304
  0.477 0.65 0.765
in Y float64 [4, 4] 0.698 0.119 0.64 0.409 0.525 0.177 0.467 0.814 0.293 0.235 0.93 0.872 0.061
  0.756 0.351 0.582
out Out float64 [4, 4] 0.44966519850200004 -0.5418160660079999 -0.16624853671799994 -0.546368087276
  0.397384777 -0.565711108 -0.08059069299999994 0.07153177399999999 0.28500899999999996
  0.13596399999999997 0.884019 0.795758 0.061 0.756 0.351 0.582

example float32 3x3
in X float32 [3, 3] 0.389 0.737 0.65 0.302 0.563 0.91 0.215 0.823 0.476
in Y float32 [3, 2] 0.446 0.575 0.704 0.833 0.188 0.317
out Out float32 [3, 2] -0.6730305 -0.39844704 0.61205727 0.40314484 0.39495796 0.6659664
)")

HEDDLE_EXAMPLES(triangular_solve_grad, R"(
example float64 4x4, transpose
attr transpose BOOLEAN true
in Out float64 [4, 2] 0.11016949152542374 -0.19491525423728817 0.08913998744507218
  -0.23691148775894538 -0.7091717051574322 0.18859153533551418 1.8541788427819987
  0.0027599194752901024
in Out@GRAD float64 [4, 2] -0.3 -0.4 -0.4 0.7 -0 0.4 -0.8 0.6
in X float64 [4, 4] 1.18 0.72 2.39 1.78 1.33 2.7 1.02 1.94 1.63 2.24 0.57 2.09 0.42 2.54 1.48 0.87
in Y float64 [4, 2] 0.13 -0.23 0.32 -0.78 -0.05 -0.6 0.5 -0.41
out X@GRAD float64 [4, 4] 0.9748064841264588 0.17233461275111278 -0.7275592058267625
  0.23572959283070333 0 0.1753905017586983 -0.7333814618224745 0.24535503748439652 0 0
  2.735630211811257 -0.7821750406060394 0 0 0 1.7030886465981894
out Y@GRAD float64 [4, 2] -5.2317033573608684 2.044131368749166 -0.7611749680715197
  0.4539221617261542 3.371647509578544 -1.8269812462189952 -0.9195402298850575 0.689655172413793

example float64 4x4, unitriangular
attr unitriangular BOOLEAN true
in Out float64 [4, 4] 0.49803674344 0.31884619352 -0.267071306 0.17514637368000005
  0.30918264000000006 0.65048712 0.3931140000000001 0.63477608 0.36592199999999997 0.170926 0.56595
  0.24493399999999999 0.119 0.177 0.525 0.293
in Out@GRAD float64 [4, 4] 0 0.6 0.1 -0.4 0.6 -0.4 -0.5 -0.3 -0.9 0.9 0.5 0.9 0.3 0.4 -0.4 0.8
in X float64 [4, 4] 0.535 0.304 0.247 0.131 0.707 0.419 0.88 0.074 0.938 0.592 0.765 0.362 0.823
  0.477 0.189 0.65
in Y float64 [4, 4] 0.698 0.582 0.061 0.467 0.64 0.814 0.93 0.872 0.409 0.235 0.756 0.351 0.119
  0.177 0.525 0.293
out X@GRAD float64 [4, 4] 0 -0.17569323999999997 -0.061177 -0.041499999999999995 0 0 0.223870208
  0.36241599999999996 0 0 0 -0.88707558 0*4
out Y@GRAD float64 [4, 4] 0 0.6 0.1 -0.4 0.6 -0.5824 -0.5304 -0.1784 -1.428 1.264312 0.942052
  1.155792 0.7725359999999999 -0.093183344 -0.714873224 0.44720489600000013

example float32 4x4, transpose
attr transpose BOOLEAN true
in Out float32 [4, 2] 0.11016949 -0.19491525 0.08913999 -0.23691149 -0.7091717 0.18859154 1.8541788
  0.0027599195
in Out@GRAD float32 [4, 2] -0.3 -0.4 -0.4 0.7 -0 0.4 -0.8 0.6
in X float32 [4, 4] 1.18 0.72 2.39 1.78 1.33 2.7 1.02 1.94 1.63 2.24 0.57 2.09 0.42 2.54 1.48 0.87
in Y float32 [4, 2] 0.13 -0.23 0.32 -0.78 -0.05 -0.6 0.5 -0.41
out X@GRAD float32 [4, 4] 0.97480655 0.1723346 -0.7275592 0.2357296 0 0.17539048 -0.7333815
  0.24535504 0 0 2.7356303 -0.782175 0 0 0 1.7030885
out Y@GRAD float32 [4, 2] -5.2317033 2.0441318 -0.76117486 0.45392212 3.3716474 -1.8269813
  -0.9195402 0.6896552
)")

HEDDLE_EXAMPLES(cholesky_solve, R"(
example lower
attr upper BOOLEAN false
in X float32 [3, 2] 0.26 0.39 -0.62 0.01 -0.12 -0.93
in Y float32 [3, 3] 2 0 0 0.5 1 0 -0.5 0.25 1.5
out Out float32 [3, 2] 0.25239584 0.006788194 -0.6979167 0.0025694445 0.051666666 -0.36027777

example upper
attr upper BOOLEAN true
in X float32 [2, 1] -0.54 0.6
in Y float32 [2, 2] 2 0.5 0 1
out Out float32 [2, 1] -0.31875002 0.735

example float64 4x4, upper
attr upper BOOLEAN true
in X float64 [4, 2] 0.371 0.789 0.684 0.267 0.58 0.893 0.163 0.476
in Y float64 [4, 4] 0.347 0.462 0.231 0.404 0.058 0.116 0.173 0.866 0.635 0.751 0.289 0.693 0.924
  0.52 0.809 0.578
out Out float64 [4, 2] -45.278670392341326 137.28327355127124 34.27048769569252 -105.71276633329852
  13.561217556454627 6.028137989876774 -5.40778138534367 5.156627386558394

example float64 2x3x4, upper
attr upper BOOLEAN true
in X float64 [2, 3, 4] 0.462 0.386 0.042 0.806 0.424 0.539 0.653 0.921 0.271 0.156 0.501 0.233 0.08
  0.692 0.348 0.195 0.615 0.118 0.768 0.577 0.883 0.845 0.309 0.73
in Y float64 [1, 3, 3] 0.896 0.299 0.598 0.498 0.797 0.697 0.1 0.199 0.398
out Out float64 [2, 3, 4] 1.081753437202784 1.3567890335803872 -0.07984187022964505
  2.7364138735173675 1.9337334407464235 3.187257075992987 1.4798664982671796 5.858115310942011
  -1.7254387600616643 -2.9061359003032754 -0.541917670996864 -5.52483233647935 -0.9565593402803136
  -0.22131077693945111 1.2607212586245287 -0.3868139830589296 -0.8135729806284205 -2.838326840542333
  3.749895084513998 -0.03413329225098847 1.989333117700289 3.042266906406913 -3.1144348174822847
  0.9605771099920989

example float32 4x4, upper
attr upper BOOLEAN true
in X float32 [4, 2] 0.371 0.789 0.684 0.267 0.58 0.893 0.163 0.476
in Y float32 [4, 4] 0.347 0.462 0.231 0.404 0.058 0.116 0.173 0.866 0.635 0.751 0.289 0.693 0.924
  0.52 0.809 0.578
out Out float32 [4, 2] -45.27867 137.2833 34.27049 -105.71278 13.561215 6.0281315 -5.4077806 5.15663
)")

HEDDLE_EXAMPLES(cholesky_solve_grad, R"(
example lower
in Out float64 [3, 2] 0.2523958333333334 0.006788194444444465 -0.6979166666666667
  0.0025694444444444298 0.05166666666666667 -0.36027777777777775
in Out@GRAD float64 [3, 2] 0.5 -0.6 -0.4 0.6 0.1 0.5
in X float64 [3, 2] 0.26 0.39 -0.62 0.01 -0.12 -0.93
in Y float64 [3, 3] 2 0 0 0.5 1 0 -0.5 0.25 1.5
out X@GRAD float64 [3, 2] 0.30572916666666666 -0.31493055555555555 -0.5645833333333333
  0.7319444444444444 0.15833333333333335 0.07222222222222222
out Y@GRAD float64 [3, 3] -0.03939583333333331 0 0 0.10591666666666669 -0.6910277777777779 0
  -0.15566666666666668 0.4121111111111111 0.05351851851851849

example upper
attr upper BOOLEAN true
in Out float64 [2, 1] -0.31875 0.735
in Out@GRAD float64 [2, 1] 0.6 -0.1
in X float64 [2, 1] -0.54 0.6
in Y float64 [2, 2] 2 0.5 0 1
out X@GRAD float64 [2, 1] 0.2125 -0.25
out Y@GRAD float64 [2, 2] 0.153 -0.28800000000000003 0 0.3675

example float64 3x4
gradient none of Y: Paddle multiplies by all of Y, also by the triangle that the solution does not
  depend on
in Out float64 [3, 4] 0.7534373437606396 1.9231105220910936 1.8609337687194194 1.3077638459123877
  0.2947988321247798 0.4827451033129194 0.8970861541422592 1.8408111752149594 -0.1815327465018657
  0.16258958133545542 -0.1011507953111654 -0.39200981394309004
in Out@GRAD float64 [3, 4] 0.3 0.8 0.3 -0.8 -0 0.9 -0.7 -0.9 -0.6 -0.8 -0.2 0.4
in X float64 [3, 4] 0.233 0.765 0.689 0.461 0.157 0.385 0.537 0.917 0.082 0.841 0.613 0.309
in Y float64 [3, 3] 0.598 0.299 0.797 0.1 0.697 0.398 0.498 0.199 0.896
out X@GRAD float64 [3, 4] 1.6731864571612338 3.6210225204756346 1.3275704756612112
  -3.229883387554744 0.19387097147842838 2.176444675171657 -1.460354394356615 -2.0341907461610282
  -1.040723609894749 -2.09884195305447 -0.2935330606567613 1.6005957795850825
out Y@GRAD float64 [3, 3] -6.4586006077545965 0 0 1.6098350509576445 6.043425289147535 0
  1.594645260730777 -0.9772720800250758 1.7783675588611745

example float32 3x4
gradient none of Y: Paddle multiplies by all of Y, also by the triangle that the solution does not
  depend on
in Out float32 [3, 4] 0.75343734 1.9231105 1.8609338 1.3077638 0.29479882 0.4827451 0.89708614
  1.8408111 -0.18153274 0.16258958 -0.101150796 -0.39200982
in Out@GRAD float32 [3, 4] 0.3 0.8 0.3 -0.8 -0 0.9 -0.7 -0.9 -0.6 -0.8 -0.2 0.4
in X float32 [3, 4] 0.233 0.765 0.689 0.461 0.157 0.385 0.537 0.917 0.082 0.841 0.613 0.309
in Y float32 [3, 3] 0.598 0.299 0.797 0.1 0.697 0.398 0.498 0.199 0.896
out X@GRAD float32 [3, 4] 1.6731865 3.6210225 1.3275706 -3.2298832 0.19387095 2.1764445 -1.4603543
  -2.0341904 -1.0407236 -2.098842 -0.2935331 1.6005957
out Y@GRAD float32 [3, 3] -6.458602 0 0 1.6098347 6.0434246 0 1.5946455 -0.9772719 1.778368
)")
