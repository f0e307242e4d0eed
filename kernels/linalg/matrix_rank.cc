#include <limits>

#include "core/interrupts.h"
#include "kernels/linalg/linalg.h"
#include "kernels/linalg/linalg_eigen.h"
#include "kernels/linalg/linalg_svd.h"

namespace heddle {
namespace {

Status InferRank(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckMatrix(ctx, "X", ctx.Bool("hermitian")));
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank()) return ctx.Defer();
  Shape out = LeadingAxes(x, 2);
  if (ctx.HasIn("TolTensor")) {
    HEDDLE_ASSIGN_OR_RETURN(out, BroadcastShape(out, ctx.InShape("TolTensor"), -1));
    if (ctx.InDType("TolTensor") != ctx.InDType("X"))
      return InvalidArgument("TolTensor must have the dtype of X");
  }
  ctx.SetOut("Out", out, DType::kI32);
  return Status::Ok();
}

// Absolute singular values of one matrix.
Eigen::VectorXd Spectrum(const Eigen::MatrixXd& a, bool hermitian) {
  if (!hermitian) return ComputeSvd(a, false).s;
  Eigen::VectorXd values;
  SelfAdjointEigen<double>(a, values, nullptr);
  return values.cwiseAbs();
}

template <typename T>
struct MatrixRank {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    const Tensor* tol = ctx.InOpt("TolTensor");
    Tensor& out = ctx.Out("Out");
    const MatrixDims d = DimsOf(x.shape());
    if (out.numel() == 0) return Status::Ok();
    HEDDLE_ASSIGN_OR_RETURN(const BatchPairs pairs,
                            PairBatches(LeadingAxes(x.shape(), 2), tol ? tol->shape() : Shape{}));
    const T relative =
        ctx.Bool("use_default_tol") && !tol
            ? std::numeric_limits<T>::epsilon() * static_cast<T>(std::max(d.rows, d.cols))
            : T(0);
    for (const int64_t i : Watched(pairs.count())) {
      int32_t rank = 0;
      if (d.rows > 0 && d.cols > 0) {
        const Eigen::VectorXd values =
            Spectrum(MatrixAt<T>(x, pairs.a[static_cast<size_t>(i)]).template cast<double>(),
                     ctx.Bool("hermitian"));
        const double floor =
            tol ? static_cast<double>(tol->data<T>()[pairs.b[static_cast<size_t>(i)]])
            : ctx.Bool("use_default_tol") ? static_cast<double>(relative) * values.maxCoeff()
                                          : ctx.Float("tol");
        rank = static_cast<int32_t>((values.array() > floor).count());
      }
      out.mutable_data<int32_t>()[i] = rank;
    }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(matrix_rank) {
  op.Doc("number of singular values above a tolerance")
      .Input("X")
      .Input("TolTensor", kOptional)
      .Output("Out")
      .Attr("tol", 0.0)
      .Attr("hermitian", false)
      .Attr("use_default_tol", true)
      .InferShape(InferRank)
      .Kernels<MatrixRank, float, double>();
}
