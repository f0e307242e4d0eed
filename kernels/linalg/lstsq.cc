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
