// eigh and eigvalsh: eigenvalues of symmetric and Hermitian matrices, in ascending order.
#include "core/interrupts.h"
#include "kernels/linalg/linalg.h"
#include "kernels/linalg/linalg_eigen.h"

namespace heddle {
namespace {

template <typename T>
struct RealOf {
  using type = T;
};
template <typename T>
struct RealOf<std::complex<T>> {
  using type = T;
};

DType RealDType(DType t) {
  return t == DType::kC64 ? DType::kF32 : t == DType::kC128 ? DType::kF64 : t;
}

Status InferEigh(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank()) return ctx.Defer();
  ctx.SetOut("Eigenvalues", LeadingAxes(x, 1), RealDType(ctx.InDType("X")));
  if (ctx.HasOut("Eigenvectors")) ctx.SetOut("Eigenvectors", x, ctx.InDType("X"));
  return Status::Ok();
}

// All is done in double precision: one instantiation for real and one for complex matrices.
template <typename T>
struct WideOf {
  using type = double;
};
template <typename T>
struct WideOf<std::complex<T>> {
  using type = std::complex<double>;
};

template <typename T>
struct Eigh {
  static Status Run(KernelContext& ctx) {
    using Real = typename RealOf<T>::type;
    const Tensor& x = ctx.In("X");
    Tensor* vectors = ctx.OutOpt("Eigenvectors");
    Real* values = ctx.Out("Eigenvalues").template mutable_data<Real>();
    const MatrixDims d = DimsOf(x.shape());
    const bool upper = ctx.Str("UPLO") == "U";
    for (int64_t i = 0; i < d.batch && d.rows > 0; ++i) {
      using Wide = typename WideOf<T>::type;
      Columns<Wide> a = MatrixAt<T>(x, i).template cast<Wide>(), found;
      if (upper) a.adjointInPlace();  // the solver reads the lower triangle
      Eigen::VectorXd spectrum;
      if (!SelfAdjointEigen<Wide>(a, spectrum, vectors ? &found : nullptr))
        return InvalidArgument("the eigenvalues of matrix ", i, " did not converge");
      MatrixMap<Real>(values + i * d.rows, d.rows, 1) = spectrum.template cast<Real>();
      if (vectors) MutableMatrixAt<T>(*vectors, i) = found.template cast<T>();
    }
    return Status::Ok();
  }
};

Status InferVectorsGrad(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckMatrix(ctx, "Eigenvectors", true));
  const Shape& v = ctx.InShape("Eigenvectors");
  for (Key key : {Key("Eigenvalues"), Key("Eigenvalues@GRAD")}) {
    if (ctx.def().FindInput(key.name) < 0 || !ctx.HasIn(key)) continue;
    const DType real = RealDType(ctx.InDType("Eigenvectors"));
    if (ctx.InDType(key) != real)
      return InvalidArgument(key.name, " is ", Name(ctx.InDType(key)), ", expected ", Name(real));
    const Shape& w = ctx.InShape(key);
    if (v.is_static() && w.is_static() && w.numel() != LeadingAxes(v, 1).numel())
      return InvalidArgument(key.name, " ", w.ToString(), " does not fit Eigenvectors ",
                             v.ToString());
  }
  ctx.SetOut("X@GRAD", v, ctx.InDType("Eigenvectors"));
  return Status::Ok();
}
Status InferEighGrad(ShapeContext& ctx) {
  if (ctx.HasIn("Eigenvectors@GRAD")) {
    HEDDLE_RETURN_IF_ERROR(CheckSameDims(ctx, "Eigenvectors", "Eigenvectors@GRAD"));
    if (ctx.InDType("Eigenvectors@GRAD") != ctx.InDType("Eigenvectors"))
      return InvalidArgument("Eigenvectors@GRAD is ", Name(ctx.InDType("Eigenvectors@GRAD")),
                             ", Eigenvectors ", Name(ctx.InDType("Eigenvectors")));
  }
  return InferVectorsGrad(ctx);
}

// V (diag(dw) + skew part of V^H dV, divided by differences of eigenvalues) V^H
template <typename T>
struct EighGrad {
  static Status Run(KernelContext& ctx) {
    using Real = typename RealOf<T>::type;
    const Tensor &v_in = ctx.In("Eigenvectors"), &w_in = ctx.In("Eigenvalues");
    const Tensor *dv = ctx.InOpt("Eigenvectors@GRAD"), *dw = ctx.InOpt("Eigenvalues@GRAD");
    Tensor& dx = ctx.Out("X@GRAD");
    const MatrixDims d = DimsOf(v_in.shape());
    for (const int64_t i : Watched(d.batch)) {
      using Wide = typename WideOf<T>::type;
      const Matrix<Wide> v = MatrixAt<T>(v_in, i).template cast<Wide>();
      Matrix<Wide> adjoint(d.rows, d.rows);
      for (const int64_t c : Watched(d.rows)) adjoint.row(c) = v.col(c).adjoint();
      const Real* w = w_in.data<Real>() + i * d.rows;
      Matrix<Wide> inner = Matrix<Wide>::Zero(d.rows, d.rows);
      if (dv) {
        const Matrix<Wide> slope = MatrixAt<T>(*dv, i).template cast<Wide>();
        const Matrix<Wide> product = Product<Wide>(adjoint, slope);
        for (const int64_t c : Watched(d.rows))
          inner.col(c) = (product.col(c) - product.row(c).adjoint()) * Wide(0.5);
      }
      for (const int64_t r : Watched(d.rows))
        for (int64_t c = 0; c < d.rows; ++c)
          if (r != c)
            inner(r, c) /= static_cast<double>(w[c] - w[r]);
          else
            inner(r, c) = dw ? Wide(dw->data<Real>()[i * d.rows + r]) : Wide(0);
      MutableMatrixAt<T>(dx, i) =
          Product<Wide>(Product<Wide>(v, inner), adjoint).template cast<T>();
    }
    return Status::Ok();
  }
};

template <typename T>
struct EigvalshGrad {
  static Status Run(KernelContext& ctx) {
    using Real = typename RealOf<T>::type;
    const Tensor &v_in = ctx.In("Eigenvectors"), &dw = ctx.In("Eigenvalues@GRAD");
    Tensor& dx = ctx.Out("X@GRAD");
    const MatrixDims d = DimsOf(v_in.shape());
    for (const int64_t i : Watched(d.batch)) {
      using Wide = typename WideOf<T>::type;
      Matrix<Wide> v = MatrixAt<T>(v_in, i).template cast<Wide>();
      LookForInterrupt();
      Matrix<Wide> adjoint(d.rows, d.rows);
      for (const int64_t c : Watched(d.rows)) adjoint.row(c) = v.col(c).adjoint();
      for (const int64_t c : Watched(d.rows)) v.col(c) *= Wide(dw.data<Real>()[i * d.rows + c]);
      MutableMatrixAt<T>(dx, i) = Product<Wide>(v, adjoint).template cast<T>();
    }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(eigh) {
  op.Doc("eigenvalues and eigenvectors of Hermitian matrices")
      .Input("X")
      .Output("Eigenvalues")
      .Output("Eigenvectors")
      .Attr("UPLO", "L")
      .InferShape(InferEigh)
      .Contract("X: [..., N, N]; UPLO: L|U")
      .Kernels<Eigh, float, double, std::complex<float>, std::complex<double>>();
}

HEDDLE_OP(eigh_grad) {
  op.Input("Eigenvectors")
      .Input("Eigenvalues")
      .Input("Eigenvalues@GRAD", kOptional)
      .Input("Eigenvectors@GRAD", kOptional)
      .Output("X@GRAD")
      .Attr("UPLO", "L")
      .InferShape(InferEighGrad)
      .Kernels<EighGrad, float, double, std::complex<float>, std::complex<double>>();
}

HEDDLE_OP(eigvalsh) {
  op.Doc("eigenvalues of Hermitian matrices")
      .Input("X")
      .Output("Eigenvalues")
      .Output("Eigenvectors", kOptional)
      .Attr("UPLO", "L")
      .Attr("is_test", false)
      .InferShape(InferEigh)
      .Contract("X: [..., N, N]; UPLO: L|U")
      .Kernels<Eigh, float, double, std::complex<float>, std::complex<double>>();
}

HEDDLE_OP(eigvalsh_grad) {
  op.Input("Eigenvectors")
      .Input("Eigenvalues@GRAD")
      .Output("X@GRAD")
      .Attr("UPLO", "L")
      .Attr("is_test", false)
      .InferShape(InferVectorsGrad)
      .Kernels<EigvalshGrad, float, double, std::complex<float>, std::complex<double>>();
}
