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
