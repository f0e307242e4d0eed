#include "kernels/linalg/linalg.h"
#include "kernels/linalg/linalg_svd.h"

namespace heddle {
namespace {

Status Infer(ShapeContext& ctx) {
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
    for (int64_t i = 0; i < d.batch; ++i) {
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

Status InferGrad(ShapeContext& ctx) {
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
      .InferShape(Infer)
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
      .InferShape(InferGrad)
      .Kernels<SvdGrad, float, double>();
}

HEDDLE_EXAMPLES(svd, R"(
example float64 1x4
in X float64 [1, 4] 0.2 0.397 0.791 0.594
out S float64 [1] 1.0844934301322438
out U float64 [1, 1] -1
out VH float64 [1, 4] -0.18441789912513507 -0.3660695297633934 -0.7293727910399098
  -0.5477211604016515

example float32 4x4
in X float32 [4, 4] 0.224 0.776 0.335 0.279 0.114 0.445 0.721 0.666 0.611 0.39 0.556 0.5 0.832 0.887
  0.942 0.169
out S float32 [4] 2.2088046 0.60908014 0.43459347 0.24008605
out U float32 [4, 4] -0.38010228 0.014801741 0.8196098 -0.42841923 -0.4359708 -0.799553 0.027695533
  0.41216224 -0.45095628 -0.12479183 -0.5629839 -0.6812595 -0.679772 0.5873017 -0.10257688
  0.42715883
out VH float32 [4, 4] -0.44184437 -0.57397413 -0.6033787 -0.33355805 0.53285855 0.21007568
  -0.14393033 -0.80697817 -0.5581703 0.7772608 -0.26486525 -0.1189875 -0.4574724 -0.14928985
  0.7382849 -0.47261715

example float64 6x3, full_matrices
attr full_matrices BOOLEAN true
in X float64 [6, 3] 7 0 3 8 9 0 6 3 0 2 8 3 3 2 6 6 7 8
out S float64 [3] 20.35439996354522 7.793160387330701 6.925680710325144
out U float64 [6, 6] -0.27942660705120154 0.22032830532328787 0.6879910114755714 0.28257996678999714
  -0.4083115690536188 -0.3917586019731764 -0.5406049683676201 -0.6257100166084101
  0.054202067910243054 -0.48965757823299555 0.04183247126803746 -0.26791953932665685
  -0.2849185704130403 -0.26821940862376015 0.38197461759559526 0.4256795959322098
  0.44194385997014046 0.5696118457561185 -0.37949290145582404 -0.11913221155471121
  -0.5860257565102477 0.6466998386058473 -0.08551806873366638 -0.2698748696869549
  -0.27757281340384554 0.5302659854583747 -0.006950909299940897 -0.12173544511312132
  0.7121483294292463 -0.3460465880182617 -0.5722123021096296 0.438892085440982 -0.1853412880128677
  -0.25717834318860067 -0.34892513290170274 0.5076474928862456
out VH float64 [3, 3] -0.6394349869251381 -0.6542455392259054 -0.40383867063352563
  -0.1394572095811165 -0.41784453763775153 0.8977514294403227 0.7560916506561205 -0.6303718876736958
  -0.1759451591797984
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
