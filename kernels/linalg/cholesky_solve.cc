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
