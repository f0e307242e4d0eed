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

HEDDLE_EXAMPLES(matrix_rank, R"(
example float32 3x3, hermitian, tol 0.1, no use_default_tol
attr hermitian BOOLEAN true
attr tol FLOAT 0.1
attr use_default_tol BOOLEAN false
in X float32 [3, 3] 1 1 1 0 1 0 0 1 1
out Out int32 [] 2

example float64 4x4, hermitian
attr hermitian BOOLEAN true
in X float64 [4, 4] 1 1 1 0 1 0 0 0 1 1 1 0 1 1 1 0
out Out int32 [] 3

example float32 3x4x5
in X float32 [3, 4, 5] 1*60
out Out int32 [3] 1 1 1

example float32 3x4x3x2, no use_default_tol
attr use_default_tol BOOLEAN false
in X float32 [3, 4, 3, 2] 0.914 0.588 0.275 0.084 0.601 0.234 0.969 0.016 0.669 0.22 0.465 0.615
  0.928 0.506 0.438 0.166 0.751 0.425 0.887 0.193 0.152 0.329 0.452 0.057 0.833 0.098 0.125 0.955
  0.479 0.37 0.411 0.982 0.18 0.819 0.071 0.547 0.724 0.316 0.574 0.52 0.86 0.343 0.846 0.493 0.397
  0.629 0.384 0.765 0.806 0.139 0.792 0.901 0.533 0.71 0.03 0.302 0.248 0.874 0.561 0.288 0.656
  0.683 0.942 0.697 0.044 0.642 0.207 0.778 0.357 0.738 0.112 0.261
out Out int32 [3, 4] 2*12
)")
