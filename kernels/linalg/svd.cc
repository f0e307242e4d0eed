#include "core/interrupts.h"
#include "kernels/linalg/linalg.h"
#include "kernels/linalg/linalg_svd.h"

namespace heddle {
namespace {

Status InferSvd(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckMatrix(ctx, "X", false));
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank()) return ctx.Defer();
  const int64_t m = x.dim(-2), n = x.dim(-1), k = m < 0 || n < 0 ? -1 : std::min(m, n);
  const bool full = ctx.Bool("full_matrices");
  Shape u = LeadingAxes(x, 2), s = u, vh = u;
  u.push_back(m);
  u.push_back(full ? m : k);
  s.push_back(k);
  vh.push_back(full ? n : k);
  vh.push_back(n);
  ctx.SetOut("U", u, ctx.InDType("X"));
  ctx.SetOut("S", s, ctx.InDType("X"));
  ctx.SetOut("VH", vh, ctx.InDType("X"));
  return Status::Ok();
}

template <typename T>
struct Svd {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    const MatrixDims d = DimsOf(x.shape());
    Tensor &u = ctx.Out("U"), &s = ctx.Out("S"), &vh = ctx.Out("VH");
    if (x.numel() == 0) return Status::Ok();
    const int64_t k = std::min(d.rows, d.cols);
    for (const int64_t i : Watched(d.batch)) {
      const Eigen::MatrixXd matrix = MatrixAt<T>(x, i).template cast<double>();
      if (!matrix.allFinite()) return InvalidArgument("matrix ", i, " of X is not finite");
      const SvdResult svd = ComputeSvd(matrix, ctx.Bool("full_matrices"));
      MutableMatrixAt<T>(u, i) = svd.u.cast<T>();
      MutableMatrixAt<T>(vh, i) = svd.v.transpose().cast<T>();
      MatrixMap<T>(s.mutable_data<T>() + i * k, k, 1) = svd.s.cast<T>();
    }
    return Status::Ok();
  }
};

Status InferSvdGrad(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckMatrix(ctx, "X", false));
  HEDDLE_RETURN_IF_ERROR(CheckMatrix(ctx, "U", false));
  HEDDLE_RETURN_IF_ERROR(CheckMatrix(ctx, "VH", false));
  const Shape &x = ctx.InShape("X"), &u = ctx.InShape("U"), &vh = ctx.InShape("VH"),
              &s = ctx.InShape("S");
  if (x.is_static() && u.is_static() && vh.is_static() && s.is_static()) {
    const int64_t k = std::min(x.dim(-2), x.dim(-1));
    if (u.dim(-2) != x.dim(-2) || vh.dim(-1) != x.dim(-1) || u.dim(-1) < k || vh.dim(-2) < k ||
        s.numel() != DimsOf(x).batch * k || DimsOf(u).batch != DimsOf(x).batch ||
        DimsOf(vh).batch != DimsOf(x).batch)
      return InvalidArgument("U ", u.ToString(), ", S ", s.ToString(), " and VH ", vh.ToString(),
                             " do not fit X ", x.ToString());
  }
  if (ctx.HasIn("U@GRAD")) HEDDLE_RETURN_IF_ERROR(CheckSameDims(ctx, "U", "U@GRAD"));
  if (ctx.HasIn("S@GRAD")) HEDDLE_RETURN_IF_ERROR(CheckSameDims(ctx, "S", "S@GRAD"));
  if (ctx.HasIn("VH@GRAD")) HEDDLE_RETURN_IF_ERROR(CheckSameDims(ctx, "VH", "VH@GRAD"));
  SetOutsLike(ctx, {{"X", "X@GRAD"}});
  return Status::Ok();
}

// (A - A^T) with entry (i, j) divided by s_j^2 - s_i^2; 0 on the diagonal.
template <typename T>
Matrix<T> Skew(const Matrix<T>& a, const Matrix<T>& s) {
  Matrix<T> out = a - a.transpose();
  for (Eigen::Index i = 0; i < out.rows(); ++i)
    for (Eigen::Index j = 0; j < out.cols(); ++j)
      out(i, j) = i == j ? T(0) : out(i, j) / (s(j, 0) * s(j, 0) - s(i, 0) * s(i, 0));
  return out;
}

template <typename T>
struct SvdGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("X"), &u_in = ctx.In("U"), &vh_in = ctx.In("VH"), &s_in = ctx.In("S");
    const Tensor *du = ctx.InOpt("U@GRAD"), *ds = ctx.InOpt("S@GRAD"), *dvh = ctx.InOpt("VH@GRAD");
    Tensor& dx = ctx.Out("X@GRAD");
    const MatrixDims d = DimsOf(x.shape());
    const int64_t k = std::min(d.rows, d.cols);
    for (int64_t i = 0; i < d.batch && x.numel() > 0; ++i) {
      const Matrix<T> u = MatrixAt<T>(u_in, i).leftCols(k), vh = MatrixAt<T>(vh_in, i).topRows(k);
      const Matrix<T> s = ConstMatrixMap<T>(s_in.data<T>() + i * k, k, 1);
      const Matrix<T> inverse = s.cwiseInverse();
      Matrix<T> sum = Matrix<T>::Zero(d.rows, d.cols);
      if (ds) {
        const ConstMatrixMap<T> slope(ds->data<T>() + i * k, k, 1);
        sum += Product<T>(Matrix<T>(u * slope.col(0).asDiagonal()), vh);
      }
      if (du) {
        const Matrix<T> slope = MatrixAt<T>(*du, i).leftCols(k);
        const Matrix<T> reach = Product<T>(Turned<T>(u), slope);
        Matrix<T> term = Product<T>(u, Matrix<T>(Skew<T>(reach, s) * s.col(0).asDiagonal()));
        if (d.rows > k) term += (slope - Product<T>(u, reach)) * inverse.col(0).asDiagonal();
        AddProduct(sum, term, vh);
      }
      if (dvh) {
        const Matrix<T> slope = MatrixAt<T>(*dvh, i).topRows(k);
        Matrix<T> term =
            s.col(0).asDiagonal() * Product<T>(Skew<T>(Product<T>(vh, Turned<T>(slope)), s), vh);
        if (d.cols > k)
          term += inverse.col(0).asDiagonal() *
                  (slope - Product<T>(Product<T>(slope, Turned<T>(vh)), vh));
        AddProduct(sum, u, term);
      }
      MutableMatrixAt<T>(dx, i) = sum;
    }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(svd) {
  op.Doc("singular value decompositions U diag(S) VH")
      .Input("X")
      .Output("U")
      .Output("S")
      .Output("VH")
      .Attr("full_matrices", false)
      .InferShape(InferSvd)
      .Kernels<Svd, float, double>();
}

HEDDLE_OP(svd_grad) {
  op.Input("X", kNoBuffer)
      .Input("U")
      .Input("S")
      .Input("VH")
      .Input("U@GRAD", kOptional)
      .Input("S@GRAD", kOptional)
      .Input("VH@GRAD", kOptional)
      .Output("X@GRAD")
      .Attr("full_matrices", false)
      .InferShape(InferSvdGrad)
      .Kernels<SvdGrad, float, double>();
}

HEDDLE_EXAMPLES(svd, R"(
example float64 1x4
in X float64 [1, 4] 0.2 0.397 0.791 0.594
out S float64 [1] 1.0844934301322438
# The sign of singular vectors is not determined.
out U ?
out VH ?

example float32 4x4
in X float32 [4, 4] 0.224 0.776 0.335 0.279 0.114 0.445 0.721 0.666 0.611 0.39 0.556 0.5 0.832 0.887
  0.942 0.169
out S float32 [4] 2.2088046 0.60908014 0.43459347 0.24008605
# The sign of singular vectors is not determined.
out U ?
out VH ?

example float64 6x3, full_matrices
attr full_matrices BOOLEAN true
in X float64 [6, 3] 7 0 3 8 9 0 6 3 0 2 8 3 3 2 6 6 7 8
out S float64 [3] 20.35439996354522 7.793160387330701 6.925680710325144
# The sign of singular vectors is not determined.
out U ?
out VH ?

example U diag(s) V^T, float32
in x float32 [3, 2] 0.52 0.86 -0.19 -0.04 -0.54 0.36
op svd X=x -> U=u S=s VH=v
op elementwise_mul X=u Y=s -> Out=q
op matmul_v2 X=q Y=v -> Out=y
close 1e-05 1e-05
out s float32 [2] 1.0140947 0.66371083
out y float32 [3, 2] 0.52000004 0.86000025 -0.19000003 -0.040000096 -0.5400001 0.35999992

example U diag(s) V^T, float64
in x float64 [3, 2] -0.98 -0.65 -0.89 0.42 -0.79 -0.63
op svd X=x -> U=u S=s VH=v
op elementwise_mul X=u Y=s -> Out=q
op matmul_v2 X=q Y=v -> Out=y
close 1e-05 1e-05
out s float64 [2] 1.6473111934930158 0.8116439070137935
out y float64 [3, 2] -0.9799999999999994 -0.6499999999999997 -0.8899999999999998 0.4199999999999999
  -0.7899999999999996 -0.6299999999999997
)")

HEDDLE_EXAMPLES(svd_grad, R"(
example float64 1x4
in S float64 [1] 1.1028254621652513
in S@GRAD float64 [1] -0.7
in U float64 [1, 1] -1
in U@GRAD float64 [1, 1] 0.8
in VH float64 [1, 4] -0.1922335013772407 -0.5476841265653463 -0.3699588139712935 -0.725409439159399
in VH@GRAD float64 [1, 4] 0.2 0.8 -0.3 -0.7
in X float64 [1, 4] 0.212 0.604 0.408 0.8
out X@GRAD float64 [1, 4] -0.3406992495085813 -1.1793977476033324 -0.034639059396557786
  0.033424241457939874

example float32 1x4
in S float32 [1] 1.1028254
in S@GRAD float32 [1] -0.7
in U float32 [1, 1] -1
in U@GRAD float32 [1, 1] 0.8
in VH float32 [1, 4] -0.1922335 -0.54768413 -0.36995882 -0.72540945
in VH@GRAD float32 [1, 4] 0.2 0.8 -0.3 -0.7
in X float32 [1, 4] 0.212 0.604 0.408 0.8
out X@GRAD float32 [1, 4] -0.34069926 -1.1793978 -0.034639016 0.03342426
)")
