// eig and eigvals: eigenvalues and eigenvectors of general square matrices, as complex numbers.
#include <type_traits>

#include "core/interrupts.h"
#include "kernels/linalg/linalg_factor.h"
#include "kernels/linalg/linalg_solvers.h"

namespace heddle {
namespace {

using Wide = std::complex<double>;
using WideMatrix = Eigen::Matrix<Wide, Eigen::Dynamic, Eigen::Dynamic>;

DType ComplexOf(DType t) {
  return t == DType::kF32 ? DType::kC64 : t == DType::kF64 ? DType::kC128 : t;
}
template <typename T>
struct ComplexType {
  using type = std::complex<T>;
};
template <typename T>
struct ComplexType<std::complex<T>> {
  using type = std::complex<T>;
};

// All solving is done in double precision.
struct Decomposition {
  Eigen::VectorXcd values;
  WideMatrix vectors;
  bool converged;
};
template <typename T>
Decomposition Decompose(const ConstMatrixMap<T>& a, bool vectors) {
  using W = std::conditional_t<std::is_floating_point_v<T>, double, Wide>;
  const Eigen::Matrix<W, Eigen::Dynamic, Eigen::Dynamic> wide = a.template cast<W>();
  Decomposition d{Eigen::VectorXcd(wide.rows()), {}, false};
  if (vectors) d.vectors.resize(wide.rows(), wide.rows());
  d.converged = GeneralEigen<W>(wide.data(), wide.rows(), d.values.data(),
                                vectors ? d.vectors.data() : nullptr);
  return d;
}

// LAPACK's choice of phase: columns of length 1 whose largest element is real.
void FixPhases(WideMatrix& v) {
  for (Eigen::Index c = 0; c < v.cols(); ++c) {
    Eigen::Index at = 0;
    const double largest = v.col(c).cwiseAbs().maxCoeff(&at);
    if (largest == 0) continue;
    if (v.col(c).imag().isZero(0)) {
      v.col(c) /= v.col(c).norm();
      continue;
    }
    v.col(c) *= std::conj(v(at, c)) / largest / v.col(c).norm();
    v(at, c) = v(at, c).real();
  }
}

Status EigShape(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckMatrix(ctx, "X", true));
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank()) return ctx.Defer();
  const DType dtype = ComplexOf(ctx.InDType("X"));
  if (ctx.def().FindOutput("Out") >= 0) {
    ctx.SetOut("Out", LeadingAxes(x, 1), dtype);
    return Status::Ok();
  }
  ctx.SetOut("Eigenvalues", LeadingAxes(x, 1), dtype);
  if (ctx.HasOut("Eigenvectors")) ctx.SetOut("Eigenvectors", x, dtype);
  return Status::Ok();
}

template <typename T>
Status SolveEigen(KernelContext& ctx, Tensor& values, Tensor* vectors) {
  using C = typename ComplexType<T>::type;
  const Tensor& x = ctx.In("X");
  const MatrixDims d = DimsOf(x.shape());
  C* w = values.mutable_data<C>();
  for (int64_t i = 0; i < d.batch && d.rows > 0; ++i) {
    Decomposition found = Decompose<T>(MatrixAt<T>(x, i), vectors != nullptr);
    if (!found.converged)
      return InvalidArgument("the eigenvalues of matrix ", i, " did not converge");
    MatrixMap<C>(w + i * d.rows, d.rows, 1) = found.values.cast<C>();
    if (vectors == nullptr) continue;
    FixPhases(found.vectors);
    MutableMatrixAt<C>(*vectors, i) = found.vectors.cast<C>();
  }
  return Status::Ok();
}
template <typename T>
struct Eig {
  static Status Run(KernelContext& ctx) {
    return SolveEigen<T>(ctx, ctx.Out("Eigenvalues"), ctx.OutOpt("Eigenvectors"));
  }
};
template <typename T>
struct Eigvals {
  static Status Run(KernelContext& ctx) { return SolveEigen<T>(ctx, ctx.Out("Out"), nullptr); }
};

Status EigGradShape(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckMatrix(ctx, "Eigenvectors", true));
  if (ctx.HasIn("Eigenvectors@GRAD"))
    HEDDLE_RETURN_IF_ERROR(CheckSameDims(ctx, "Eigenvectors", "Eigenvectors@GRAD"));
  HEDDLE_RETURN_IF_ERROR(CheckSameDims(ctx, "Eigenvalues", "Eigenvalues@GRAD"));
  const Shape &v = ctx.InShape("Eigenvectors"), &w = ctx.InShape("Eigenvalues");
  if (v.is_static() && w.is_static() && !(w == LeadingAxes(v, 1)))
    return InvalidArgument("Eigenvalues ", w.ToString(), " do not fit Eigenvectors ", v.ToString());
  ctx.SetOut("X@GRAD", v, ctx.InDType("Eigenvectors"));
  return Status::Ok();
}

// A^-1 B from the real system [[Re A, -Im A], [Im A, Re A]].
Matrix<Wide> SolveComplex(const Matrix<Wide>& a, const Matrix<Wide>& b) {
  const Eigen::Index n = a.rows(), k = b.cols();
  Matrix<double> real(2 * n, 2 * n), sides(2 * n, k);
  real.topLeftCorner(n, n) = real.bottomRightCorner(n, n) = a.real();
  real.bottomLeftCorner(n, n) = a.imag();
  real.topRightCorner(n, n) = -a.imag();
  sides.topRows(n) = b.real();
  sides.bottomRows(n) = b.imag();
  const Matrix<double> found = LuFactors<double>(std::move(real)).Solve(std::move(sides));
  Matrix<Wide> out(n, k);
  out.real() = found.topRows(n);
  out.imag() = found.bottomRows(n);
  return out;
}

// V^-H (diag(dw) + (V^H dV - V^H V Re diag(V^H dV)) / conj(w_c - w_r)) V^H
template <typename C>
struct EigGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor &v_in = ctx.In("Eigenvectors"), &w_in = ctx.In("Eigenvalues");
    const Tensor *dv = ctx.InOpt("Eigenvectors@GRAD"), *dw = ctx.InOpt("Eigenvalues@GRAD");
    Tensor& out = ctx.Out("X@GRAD");
    const MatrixDims d = DimsOf(v_in.shape());
    for (int64_t i = 0; i < d.batch && d.rows > 0; ++i) {
      const Matrix<Wide> v = MatrixAt<C>(v_in, i).template cast<Wide>(), adjoint = v.adjoint();
      const C* w = w_in.data<C>() + i * d.rows;
      Matrix<Wide> inner = Matrix<Wide>::Zero(d.rows, d.rows);
      if (dv != nullptr) {
        const Matrix<Wide> slope = MatrixAt<C>(*dv, i).template cast<Wide>();
        inner = Product<Wide>(adjoint, slope);
        const Eigen::VectorXcd size = inner.diagonal().real().template cast<Wide>();
        inner -= Product<Wide>(adjoint, v) * size.asDiagonal();
      }
      for (const int64_t r : Watched(d.rows))
        for (int64_t c = 0; c < d.rows; ++c)
          if (r != c)
            inner(r, c) /= std::conj(Wide(w[c]) - Wide(w[r]));
          else
            inner(r, c) = dw ? Wide(dw->data<C>()[i * d.rows + r]) : Wide(0);
      MutableMatrixAt<C>(out, i) =
          SolveComplex(adjoint, Product<Wide>(inner, adjoint)).template cast<C>();
    }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(eig) {
  op.Doc("complex eigenvalues and eigenvectors of square matrices");
  op.Input("X").Output("Eigenvalues").Output("Eigenvectors", kOptional).InferShape(EigShape);
  op.Kernels<Eig, float, double, std::complex<float>, std::complex<double>>();
}
HEDDLE_OP(eigvals) {
  op.Doc("complex eigenvalues of square matrices").Input("X").Output("Out").InferShape(EigShape);
  op.Kernels<Eigvals, float, double, std::complex<float>, std::complex<double>>();
}
HEDDLE_OP(eig_grad) {
  op.Input("Eigenvalues").Input("Eigenvectors");
  op.Input("Eigenvalues@GRAD").Input("Eigenvectors@GRAD", kOptional);
  op.Output("X@GRAD").InferShape(EigGradShape).KernelKey("Eigenvectors");
  op.Kernels<EigGrad, std::complex<float>, std::complex<double>>();
}
