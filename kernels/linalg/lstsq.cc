#include <Eigen/QR>

#include "core/interrupts.h"
#include "kernels/linalg/linalg.h"
#include "kernels/linalg/linalg_svd.h"

namespace heddle {
namespace {

bool BySingularValues(const std::string& driver) { return driver == "gelsd" || driver == "gelss"; }

Status InferLstsq(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckMatrix(ctx, "X", false));
  HEDDLE_RETURN_IF_ERROR(CheckMatrix(ctx, "Y", false));
  const Shape &x = ctx.InShape("X"), &y = ctx.InShape("Y");
  if (!x.is_static() || !y.is_static()) return ctx.Defer();
  if (x.dim(-2) != y.dim(-2) || !(LeadingAxes(x, 2) == LeadingAxes(y, 2)) ||
      ctx.InDType("X") != ctx.InDType("Y"))
    return InvalidArgument("X ", x.ToString(), " and Y ", y.ToString(), " do not fit each other");
  const std::string& driver = ctx.Str("driver");
  if (!BySingularValues(driver) && driver != "gels" && driver != "gelsy")
    return InvalidArgument("driver must be gels, gelsy, gelsd or gelss, not '", driver, "'");
  const Shape batch = LeadingAxes(x, 2);
  // As in Paddle, a batch of one matrix has a solution without batch dimensions.
  Shape solution = batch.numel() == 1 ? Shape{} : batch, residuals = batch, values = batch;
  solution.push_back(x.dim(-1));
  solution.push_back(y.dim(-1));
  residuals.push_back(y.dim(-1));
  values.push_back(std::min(x.dim(-2), x.dim(-1)));
  const DType dtype = ctx.InDType("X");
  ctx.SetOut("Solution", solution, dtype);
  ctx.SetOut("Residuals", x.dim(-2) > x.dim(-1) ? residuals : Shape{0}, dtype);
  ctx.SetOut("Rank", driver == "gels" ? Shape{0} : batch, DType::kI32);
  ctx.SetOut("SingularValues", BySingularValues(driver) ? values : Shape{0}, dtype);
  return Status::Ok();
}

template <typename T>
struct Lstsq {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("X"), &y = ctx.In("Y");
    const std::string& driver = ctx.Str("driver");
    const MatrixDims d = DimsOf(x.shape());
    const int64_t sides = y.dim(-1), k = std::min(d.rows, d.cols);
    Tensor *residuals = ctx.OutOpt("Residuals"), *ranks = ctx.OutOpt("Rank"),
           *values = ctx.OutOpt("SingularValues");
    const double rcond = ctx.Float("rcond");
    for (const int64_t i : Watched(d.batch)) {
      const Matrix<double> a = MatrixAt<T>(x, i).template cast<double>();
      const Matrix<double> b = MatrixAt<T>(y, i).template cast<double>();
      if (!a.allFinite()) return InvalidArgument("matrix ", i, " of X is not finite");
      auto z = MutableMatrixAt<T>(ctx.Out("Solution"), i);
      Eigen::Index rank = 0;
      if (k == 0) {
        z.setZero();  // of all solutions the smallest
      } else if (BySingularValues(driver)) {
        const SvdResult svd = ComputeSvd(a, false);
        rank = (svd.s.array() > rcond * svd.s(0)).count();
        const Eigen::VectorXd inverse = svd.s.head(rank).cwiseInverse();
        const Matrix<double> u = svd.u.leftCols(rank), v = svd.v.leftCols(rank);
        const Matrix<double> reach = inverse.asDiagonal() * Product<double>(Turned<double>(u), b);
        z = Product<double>(v, reach).cast<T>();
        if (values) MatrixMap<T>(values->mutable_data<T>() + i * k, k, 1) = svd.s.cast<T>();
      } else {
        Eigen::CompleteOrthogonalDecomposition<Eigen::MatrixXd> qr;
        if (driver == "gelsy") qr.setThreshold(rcond);
        qr.compute(a);
        z = qr.solve(b).cast<T>();
        rank = qr.rank();
      }
      if (ranks && driver != "gels") ranks->mutable_data<int32_t>()[i] = static_cast<int32_t>(rank);
      if (residuals && d.rows > d.cols) {
        Matrix<double> rest = -b;
        const Matrix<double> wide = z.template cast<double>();
        if (k > 0) rest += Product<double>(a, wide);
        MatrixMap<T>(residuals->mutable_data<T>() + i * sides, 1, sides) =
            rest.colwise().squaredNorm().template cast<T>();
      }
    }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(lstsq) {
  op.Doc("least squares solutions of X Z = Y")
      .Input("X")
      .Input("Y")
      .Output("Solution")
      .Output("Residuals", kOptional)
      .Output("Rank", kOptional)
      .Output("SingularValues", kOptional)
      .Attr("rcond", 0.0)
      .Attr("driver", "gels")
      .InferShape(InferLstsq)
      .Kernels<Lstsq, float, double>();
}

HEDDLE_EXAMPLES(lstsq, R"(
example float64 3x3, driver gelsd
attr driver STRING "gelsd"
in X float64 [3, 2] 0.203 0.492 0.299 0.589 0.106 0.396
in Y float64 [3, 3] 0.545 0.604 0.663 0.839 0.78 0.898 0.427 0.721 0.486
out Rank int32 [] 2
out Residuals float64 [3] 0.005218493845536881 0.013908704909994123 0.0005686037898986278
out SingularValues float64 [2] 0.9393260031066032 0.07289485501579665
out Solution float64 [2, 3] 1.537582422366617 -1.9136653451653272 1.2704886429891724
  0.5933334498573252 2.213162457739802 0.8629723205107441

example float64 2x3x4
in X float64 [2, 3, 4] 0.442 0.402 0.681 0.841 0.283 0.044 0.602 0.482 0.522 0.641 0.124 0.163 0.203
  0.801 0.363 0.96 0.761 0.562 0.243 0.323 0.88 0.92 0.084 0.721
in Y float64 [2, 3, 2] 0.615 0.308 0.155 0.078 0.846 0.922 0.769 0.231 0.539 0.692 0.385 0.462
out Rank ?
out Residuals float64 [0]
out SingularValues ?
out Solution float64 [2, 4, 2] 0.4705920347019726 0.9793495693855188 0.9234551418073345
  0.7736102297699737 -0.18568680388906333 0.07846300672010731 0.1928918752718572 -0.5818039591109653
  0.09972196074224515 0.6887304526883673 0.08321573129346527 0.001992882620497183 1.5458977851095186
  1.1302828733280108 0.12597890125885736 -0.3340638165550259

example float32 3x2x4
in X float32 [3, 2, 4] 0.474 0.397 0.048 0.823 0.435 0.552 0.668 0.939 0.28 0.164 0.513 0.242 0.087
  0.706 0.358 0.203 0.629 0.126 0.784 0.59 0.9 0.861 0.319 0.745
in Y float32 [3, 2, 3] 0.111 0.886 0.627 0.679 0.266 0.06 0.421 0.163 0.369 0.576 0.937 0.318 0.834
  0.782 0.473 0.524 0.215 0.731
out Rank ?
out Residuals float32 [0]
out SingularValues ?
out Solution float32 [3, 4, 3] -0.108767316 0.61418927 0.47153217 0.16925733 0.1547307 0.07973194
  0.85461986 -1.1336901 -1.0002351 0.066025265 0.7142932 0.51014745 0.18219972 -0.2510722 0.24386388
  0.49696824 1.3414347 0.13487883 0.452137 -0.008701858 0.4443815 0.2336156 0.073425375 0.20921585
  0.28362662 0.17675161 0.30088085 -0.18546948 -0.41207096 0.2687139 0.6392508 0.7480273 0.1292046
  0.30134797 0.23100127 0.25185004

example float64, a batch of one
attr driver STRING "gelsd"
in X float64 [1, 3, 2] 1 2 3 5 6 9
in Y float64 [1, 3, 1] 1 2 4
out Solution float64 [2, 1] 0.10526315789473832 0.36842105263157804
out Residuals float64 [1, 1] 0.05263157894736853
out Rank int32 [1] 2
out SingularValues float64 [1, 2] 12.48511553369652 0.34912764177282
)")
