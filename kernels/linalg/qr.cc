#include "kernels/linalg/linalg_factor.h"

namespace heddle {
namespace {

Status InferQr(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckMatrix(ctx, "X", false));
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank()) return ctx.Defer();
  const std::string& mode = ctx.Str("mode");
  if (mode != "reduced" && mode != "complete" && mode != "r")
    return InvalidArgument("mode must be reduced, complete or r, not '", mode, "'");
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
      if (want_q) MutableMatrixAt<T>(ctx.Out("Q"), i) = q;
    }
    return Status::Ok();
  }
};

Status InferQrGrad(ShapeContext& ctx) {
  for (Key key : {Key("X"), Key("Q"), Key("R")})
    HEDDLE_RETURN_IF_ERROR(CheckMatrix(ctx, key, false));
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
  if (ctx.HasIn("Q@GRAD")) HEDDLE_RETURN_IF_ERROR(CheckSameDims(ctx, "Q", "Q@GRAD"));
  if (ctx.HasIn("R@GRAD")) HEDDLE_RETURN_IF_ERROR(CheckSameDims(ctx, "R", "R@GRAD"));
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
      .Kernels<QrGrad, float, double>();
}

HEDDLE_EXAMPLES(qr, R"(
example float64 2x2, mode complete
attr mode STRING "complete"
in X float64 [2, 2] 0.392 0.197 0.783 0.587
out Q float64 [2, 2] -0.44767034364742386 -0.8941986711120733 -0.8941986711120733
  0.44767034364742353
out R float64 [2, 2] -0.8756443341905433 -0.6130856776413296 0 0.0866253535119591

example float32 3x5, mode r
attr mode STRING "r"
in X float32 [3, 5] 0.395 0.224 0.794 0.623 0.452 0.908 0.338 0.68 0.566 0.737 0.167 0.11 0.851
  0.509 0.281
out Q ?
out R float32 [3, 5] -1.0041803 -0.41203156 -1.0687193 -0.84149826 -0.8909385 0 0.082158126
  0.7419813 0.48840076 0.17246157 0 0 0.35261795 0.14460719 0.054030806

example float64 2x2x2, mode complete
attr mode STRING "complete"
in X float64 [2, 2, 2] 0.772 0.442 0.222 0.332 0.552 0.112 0.882 0.662
out Q float64 [2, 2, 2] -0.9610527731865752 -0.27636491664173535 -0.27636491664173535
  0.9610527731865751 -0.5305171772681669 -0.8476741854176145 -0.8476741854176145 0.5305171772681669
out R float64 [2, 2, 2] -0.8032857523945013 -0.5165384780735225 0 0.19691622754229593
  -1.0404941133903642 -0.6205782346004955 0 0.2562628625847537
)")

HEDDLE_EXAMPLES(qr_grad, R"(
example float64 2x2, mode complete
attr mode STRING "complete"
in Q float64 [2, 2] -0.9480352977724806 -0.3181651680769655 -0.3181651680769655 0.9480352977724807
in Q@GRAD float64 [2, 2] 0.6 -0.5 0.1 0.3
in R float64 [2, 2] -0.6191752579036084 -0.6207531633310764 0 0.617590892269682
in R@GRAD float64 [2, 2] -1 0.9 -0 -0.4
in X float64 [2, 2] 0.587 0.392 0.197 0.783
out X@GRAD float64 [2, 2] 0.8621534084389917 -0.7259657007644467 0.5740670413701534
  -0.6655627703782614

example float64 2x2x2, mode complete
attr mode STRING "complete"
in Q float64 [2, 2, 2] -0.14357464120022057 -0.9896394911300921 -0.9896394911300921
  0.1435746412002209 -0.5558552855084362 -0.8312790756252288 -0.8312790756252288 0.5558552855084362
in Q@GRAD float64 [2, 2, 2] 0.8 -0.8 -0.3 0.2 0.2 -0.5 -0.2 0.9
in R float64 [2, 2, 2] -0.780082046966856 -0.6097409905143085 0 -0.35816745313697884
  -0.3993845264904488 -1.0405711098823422 0 -0.36521194569486715
in R@GRAD float64 [2, 2, 2] -0.9 -0.7 -0.5 0.3 -0.2 0.5 -0.8 -0.3
in X float64 [2, 2, 2] 0.112 0.442 0.772 0.552 0.222 0.882 0.332 0.662
out X@GRAD float64 [2, 2, 2] -0.2743055737551766 -0.1963895984988727 0.9492177027600383
  0.7358200361511313 -0.5173715658795213 -0.0285439200666495 0.5865463642269376 -0.582396123465145

example float32 2x2, mode complete
attr mode STRING "complete"
in Q float32 [2, 2] -0.9480353 -0.31816515 -0.31816515 0.9480353
in Q@GRAD float32 [2, 2] 0.6 -0.5 0.1 0.3
in R float32 [2, 2] -0.61917526 -0.62075317 0 0.6175909
in R@GRAD float32 [2, 2] -1 0.9 -0 -0.4
in X float32 [2, 2] 0.587 0.392 0.197 0.783
out X@GRAD float32 [2, 2] 0.86215335 -0.7259657 0.57406706 -0.66556275
)")
