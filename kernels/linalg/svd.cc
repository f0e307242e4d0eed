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
    const int64_t k = std::min(d.rows, d.cols);
    for (const int64_t i : Watched(d.batch)) {
      if (k == 0) {  // any orthogonal matrices
        MutableMatrixAt<T>(u, i).setIdentity();
        MutableMatrixAt<T>(vh, i).setIdentity();
        continue;
      }
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
