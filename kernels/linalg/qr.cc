#include "core/memory/watched_bytes.h"
#include "kernels/linalg/linalg_factor.h"

namespace heddle {
namespace {

Status InferQr(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank()) return ctx.Defer();
  const std::string& mode = ctx.Str("mode");
  const int64_t m = x.dim(-2), n = x.dim(-1), k = m < 0 || n < 0 ? -1 : std::min(m, n);
  const int64_t inner = mode == "complete" ? m : k;
  Shape q = LeadingAxes(x, 2), r = q;
  q.push_back(m);
  q.push_back(inner);
  r.push_back(inner);
  r.push_back(n);
  ctx.SetOut("Q", mode == "r" ? Shape{0} : q, ctx.InDType("X"));
  ctx.SetOut("R", r, ctx.InDType("X"));
  return Status::Ok();
}

template <typename T>
struct Qr {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    const MatrixDims d = DimsOf(x.shape());
    const bool want_q = ctx.Str("mode") != "r";
    Tensor& r_out = ctx.Out("R");
    const int64_t inner = r_out.dim(-2);
    if (d.cols == 0 && want_q)  // an orthonormal basis all the same
      for (int64_t i = 0; i < d.batch; ++i)
        MutableMatrixAt<T>(ctx.Out("Q"), i) = Matrix<T>::Identity(d.rows, inner);
    for (int64_t i = 0; i < d.batch && x.numel() > 0; ++i) {
      Matrix<T> r = MatrixAt<T>(x, i);
      const Matrix<T> q = FactorQr<T>(r, want_q ? inner : 0);
      MutableMatrixAt<T>(r_out, i) = r.topRows(inner);
      if (want_q) WatchedCopy(q.data(), q.size(), MutableMatrixAt<T>(ctx.Out("Q"), i).data());
    }
    return Status::Ok();
  }
};

Status InferQrGrad(ShapeContext& ctx) {
  const Shape &x = ctx.InShape("X"), &q = ctx.InShape("Q"), &r = ctx.InShape("R");
  if (x.is_static() && q.is_static() && r.is_static()) {
    const int64_t k = std::min(x.dim(-2), x.dim(-1));
    if (x.dim(-2) > x.dim(-1) && ctx.Str("mode") != "reduced")
      return Unimplemented("the gradient of qr for tall matrices needs mode 'reduced'");
    if (q.dim(-2) != x.dim(-2) || q.dim(-1) != k || r.dim(-2) != k || r.dim(-1) != x.dim(-1) ||
        DimsOf(q).batch != DimsOf(x).batch || DimsOf(r).batch != DimsOf(x).batch)
      return InvalidArgument("Q ", q.ToString(), " and R ", r.ToString(), " do not fit X ",
                             x.ToString());
  }
  SetOutsLike(ctx, {{"X", "X@GRAD"}});
  return Status::Ok();
}

// Liao et al. (2019), arXiv 1903.09650, section 3, for a square R.
template <typename T>
Matrix<T> TallGrad(const Matrix<T>& q, const Matrix<T>& r, const Matrix<T>& dq,
                   const Matrix<T>& dr) {
  Matrix<T> m = Product<T>(r, Turned<T>(dr));
  AddProduct(m, Turned<T>(dq), q, T(-1));
  for (Eigen::Index i = 0; i < m.rows(); ++i)
    for (Eigen::Index j = i + 1; j < m.cols(); ++j) m(i, j) = m(j, i);
  Matrix<T> side = (dq + Product<T>(q, m)).transpose();
  SolveTriangle<T>(r, true, false, side);
  return side.transpose();
}

template <typename T>
struct QrGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor &x_in = ctx.In("X"), &q_in = ctx.In("Q"), &r_in = ctx.In("R");
    const Tensor *dq_in = ctx.InOpt("Q@GRAD"), *dr_in = ctx.InOpt("R@GRAD");
    Tensor& out = ctx.Out("X@GRAD");
    const MatrixDims d = DimsOf(x_in.shape());
    for (int64_t i = 0; i < d.batch && x_in.numel() > 0; ++i) {
      const Matrix<T> q = MatrixAt<T>(q_in, i), r = MatrixAt<T>(r_in, i);
      Matrix<T> dq = Matrix<T>::Zero(q.rows(), q.cols()), dr = Matrix<T>::Zero(r.rows(), r.cols());
      if (dq_in) dq = MatrixAt<T>(*dq_in, i);
      if (dr_in) dr = MatrixAt<T>(*dr_in, i);
      auto to = MutableMatrixAt<T>(out, i);
      if (d.rows >= d.cols) {
        to = TallGrad<T>(q, r, dq, dr);
        continue;
      }
      // X = [A | B] and R = [U | V]: the gradient of B follows from V, the rest is A's.
      const Matrix<T> dv = dr.rightCols(d.cols - d.rows);
      AddProduct(dq, MatrixAt<T>(x_in, i).rightCols(d.cols - d.rows), Turned<T>(dv));
      to.leftCols(d.rows) = TallGrad<T>(q, r.leftCols(d.rows), dq, dr.leftCols(d.rows));
      SetProduct(to.rightCols(d.cols - d.rows), q, dv);
    }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(qr) {
  op.Doc("QR decompositions; mode reduced, complete or r")
      .Input("X")
      .Output("Q")
      .Output("R")
      .Attr("mode", "reduced")
      .InferShape(InferQr)
      .Contract("X: [..._, _, _]; mode: reduced|complete|r")
      .Kernels<Qr, float, double>();
}

HEDDLE_OP(qr_grad) {
  op.Input("X")
      .Input("Q")
      .Input("R")
      .Input("Q@GRAD", kOptional)
      .Input("R@GRAD", kOptional)
      .Output("X@GRAD")
      .Attr("mode", "reduced")
      .InferShape(InferQrGrad)
      .Contract(
          "X: [..., M, N]; Q: as X [..., M, _]; R: as X [..., _, N]; Q@GRAD: like Q; R@GRAD: "
          "like R; mode: reduced|complete|r")
      .Kernels<QrGrad, float, double>();
}
