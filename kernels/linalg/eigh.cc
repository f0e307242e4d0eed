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
  HEDDLE_RETURN_IF_ERROR(CheckMatrix(ctx, "X", true));
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank()) return ctx.Defer();
  const std::string& part = ctx.Str("UPLO");
  if (part != "L" && part != "U") return InvalidArgument("UPLO must be L or U, not '", part, "'");
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
      const Matrix<Wide> v = MatrixAt<T>(v_in, i).template cast<Wide>(), adjoint = v.adjoint();
      const Real* w = w_in.data<Real>() + i * d.rows;
      Matrix<Wide> inner = Matrix<Wide>::Zero(d.rows, d.rows);
      if (dv) {
        const Matrix<Wide> slope = MatrixAt<T>(*dv, i).template cast<Wide>();
        const Matrix<Wide> product = Product<Wide>(adjoint, slope);
        inner = (product - product.adjoint()) * Wide(0.5);
      }
      for (int64_t r = 0; r < d.rows; ++r)
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
      const Matrix<Wide> adjoint = v.adjoint();
      for (int64_t c = 0; c < d.rows; ++c) v.col(c) *= Wide(dw.data<Real>()[i * d.rows + c]);
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

HEDDLE_EXAMPLES(eigh, R"(
example float64 4x4, UPLO U
attr UPLO STRING "U"
in X float64 [4, 4] 0.938 0.65 0.765 0.707 0.304 0.419 0.88 0.823 0.074 0.592 0.189 0.362 0.535
  0.247 0.131 0.477
out Eigenvalues float64 [4] -0.7243265438954829 -0.021527809416268 0.1312393622594366
  2.6376149910523154
# The factor of an eigenvector is not determined.
out Eigenvectors ?

example complex64 4x4
in X complex64 [4, 4] 0.2+1.1j 1.2-2j -2-0.7j 0.9-0.6j 0.1+1.3j -0.9+0.8j 0.8+1.2j 0.1-1.7j 1+1.9j
  0.3+1.9j 1.1+0.9j -1.3-1.3j -0.8-0.2j 0.1-0.5j 0+1.9j 1.8-1.3j
out Eigenvalues float32 [4] -3.4354258 -0.12707607 1.1494185 4.613083
# The factor of an eigenvector is not determined.
out Eigenvectors ?

example float32 2x4x4
in X float32 [2, 4, 4] 0.256 0.817 0.789 0.172 0.593 0.901 0.649 0.424 0.228 0.396 0.958 0.481 0.929
  0.565 0.144 0.537 0.677 0.705 0.368 0.509 0.761 0.2 0.34 0.312 0.452 0.873 0.116 0.845 0.088 0.284
  0.733 0.621
out Eigenvalues float32 [2, 4] -0.55144554 0.2371034 0.8310716 2.1352715 -0.8270375 -0.23765692
  0.66416574 2.0145288
# The factor of an eigenvector is not determined.
out Eigenvectors ?

example complex64 2x4x4
in X complex64 [2, 4, 4] -1.1+0j 0.8+1.9j -0.7-0.6j -1.6+1.2j 0.9+0.2j 1.7+1.1j 1+0.7j 1.4-0.7j
  1.2+0.4j 0.5+1.8j -1.5-1.2j 1.8-0.7j -0.6+1.6j -0.6+1.8j -1.6+1j 0.4+1.8j 1.6-0.8j 1.4+0.8j
  -0.8-1.1j 0.3-1.5j -1.6-0.6j -0.6+1.1j 0.6+0.2j 0+0.7j 1.6+1.1j -0.8+0.8j 0.5-0.5j -0.4-0.4j
  -1.3+1.2j 1.6+1.3j -0.9-1.4j -1.8+0.1j
out Eigenvalues float32 [2, 4] -3.9493275 -1.7888808 0.88225573 4.3559537 -4.539166 -1.3246514
  1.2305803 4.333237
# The factor of an eigenvector is not determined.
out Eigenvectors ?

example V diag(w) V^T, float32
in x float32 [3, 3] 2 0.5 -0.25 0.5 1 0.75 -0.25 0.75 -1
op eigh X=x -> Eigenvalues=w Eigenvectors=v
op elementwise_mul X=v Y=w -> Out=q
op matmul_v2 X=q Y=v -> Out=y
attr trans_y BOOLEAN true
close 1e-05 1e-05
out w float32 [3] -1.2982707 1.0900294 2.2082412
out y float32 [3, 3] 1.9999993 0.49999997 -0.2500002 0.4999999 0.9999993 0.74999976 -0.2500002
  0.74999976 -0.9999997

example V diag(w) V^T, float64
in x float64 [3, 3] 2 0.5 -0.25 0.5 1 0.75 -0.25 0.75 -1
op eigh X=x -> Eigenvalues=w Eigenvectors=v
op elementwise_mul X=v Y=w -> Out=q
op matmul_v2 X=q Y=v -> Out=y
attr trans_y BOOLEAN true
close 1e-05 1e-05
out w float64 [3] -1.2982706802794646 1.090029580675964 2.2082410996035007
out y float64 [3, 3] 2 0.4999999999999999 -0.24999999999999994 0.5 1 0.7499999999999994 -0.25
  0.7499999999999994 -0.9999999999999999
)")

HEDDLE_EXAMPLES(eigh_grad, R"(
example float64 4x4, UPLO U
gradient symmetric: X is Hermitian, and Paddle gives either triangle half of the slope
attr UPLO STRING "U"
in Eigenvalues float64 [4] -0.34669098691913336 0.40720040248696115 0.570313873898191
  1.7381767105339816
in Eigenvalues@GRAD float64 [4] -0.3 -0.4 -0.4 0.7
in Eigenvectors float64 [4, 4] -0.109487074935087 0.9358924416244454 0.1029984453849426
  0.31860514493755054 0.7473060083936733 -0.1392060896041602 0.3324250299938389 0.5582553124417435
  -0.6281396957811809 -0.32304992916796516 0.09996322858798548 0.7007757264480303 0.1870476752723739
  0.019124476252311323 -0.9321439119643202 0.30944328878023664
in Eigenvectors@GRAD float64 [4, 4] -0 0.4 -0.8 0.6 0.1 -0.7 0.2 -0.4 -0.7 -0.9 0.9 -0.1 0.8 0.4
  -0.4 0.2
out X@GRAD float64 [4, 4] -0.21693019268492633 -0.05166581021896993 0.4883517365075049
  1.4654035396188212 -0.05166581021896993 0.04316353399281718 0.29794797852026683
  -0.012231115566594841 0.4883517365075049 0.2979479785202668 -0.06827668913894802
  0.0915110450918526 1.465403539618821 -0.012231115566594827 0.09151104509185258 -0.1579566521689431

example float32 4x4, UPLO U
gradient symmetric: X is Hermitian, and Paddle gives either triangle half of the slope
attr UPLO STRING "U"
in Eigenvalues float32 [4] -0.34669098 0.4072004 0.5703139 1.7381767
in Eigenvalues@GRAD float32 [4] -0.3 -0.4 -0.4 0.7
in Eigenvectors float32 [4, 4] -0.10948707 0.93589246 0.10299844 0.31860515 0.747306 -0.1392061
  0.33242503 0.5582553 -0.6281397 -0.32304993 0.099963225 0.70077574 0.18704768 0.019124476
  -0.9321439 0.3094433
in Eigenvectors@GRAD float32 [4, 4] -0 0.4 -0.8 0.6 0.1 -0.7 0.2 -0.4 -0.7 -0.9 0.9 -0.1 0.8 0.4
  -0.4 0.2
out X@GRAD float32 [4, 4] -0.21693015 -0.05166576 0.4883518 1.4654033 -0.051665723 0.043163575
  0.29794797 -0.012231141 0.48835176 0.29794794 -0.06827673 0.09151116 1.4654033 -0.012231134
  0.09151115 -0.15795669

example complex64 2x2
gradient symmetric: X is Hermitian, and Paddle gives either triangle half of the slope
in Eigenvalues float32 [2] -1 2
in Eigenvalues@GRAD float32 [2] 0.5 -0.25
in Eigenvectors complex64 [2, 2] 0.6+0j 0+0.8j 0+0.8j 0.6+0j
in Eigenvectors@GRAD complex64 [2, 2] 0.1+0.2j -0.4+0.3j 0.7-0.1j 0.2+0.5j
out X@GRAD complex64 [2, 2] 0.00079999864+0j -0.07000001-0.3544j -0.07000001+0.35440004j 0.2492+0j
)")

HEDDLE_EXAMPLES(eigvalsh, R"(
example float32 4x4, is_test
attr is_test BOOLEAN true
in X float32 [4, 4] 0.385 0.222 0.818 0.601 0.439 0.927 0.331 0.656 0.547 0.764 0.168 0.71 0.114
  0.872 0.493 0.276
out Eigenvalues float32 [4] -0.44228974 -0.34260142 0.33369485 2.2071958
out Eigenvectors ?

example float64 4x4, UPLO U
attr UPLO STRING "U"
in X float64 [4, 4] 0.189 0.765 0.304 0.247 0.074 0.419 0.707 0.65 0.592 0.362 0.535 0.477 0.823
  0.88 0.938 0.131
out Eigenvalues float64 [4] -0.6098555475577405 -0.1844885478568675 0.09962923480238597
  1.9687148606122231
out Eigenvectors ?

example complex64 4x4, is_test
attr is_test BOOLEAN true
in X complex64 [4, 4] 0.2+1.1j 1.2-2j -2-0.7j 0.9-0.6j 0.1+1.3j -0.9+0.8j 0.8+1.2j 0.1-1.7j 1+1.9j
  0.3+1.9j 1.1+0.9j -1.3-1.3j -0.8-0.2j 0.1-0.5j 0+1.9j 1.8-1.3j
out Eigenvalues float32 [4] -3.435426 -0.12707558 1.1494186 4.6130834
out Eigenvectors ?
)")

HEDDLE_EXAMPLES(eigvalsh_grad, R"(
example lower
gradient symmetric: X is Hermitian, and Paddle gives either triangle half of the slope
in Eigenvalues@GRAD float64 [2] -0.5 -0.9
in Eigenvectors float64 [2, 2] 0.3826834323650898 -0.9238795325112867 -0.9238795325112867
  -0.3826834323650898
out X@GRAD float64 [2, 2] -0.8414213562373095 -0.14142135623730948 -0.14142135623730953
  -0.5585786437626905

example float64 4x4, UPLO U
gradient symmetric: X is Hermitian, and Paddle gives either triangle half of the slope
attr UPLO STRING "U"
in Eigenvalues@GRAD float64 [4] -0.4 0.3 0.2 0.6
in Eigenvectors float64 [4, 4] -0.44261988532436586 -0.5809388436264399 -0.4913866701327142
  0.4744858664884583 0.05804508252654117 -0.29863137946016305 0.8000558297830657 0.5170693733207732
  0.8057891317586883 0.06664172420151515 -0.3427275008222894 0.47833107354126114
  -0.38913015900789644 0.7542468029518878 -0.031427214736927 0.5279221625971241
out X@GRAD float64 [4, 4] 0.20625631127159083 0.13090064534224055 0.3009080327963325
  -0.04696253246203444 0.13090064534224058 0.31384082584705497 0.06887875038038904
  0.10021703170451057 0.3009080327963325 0.06887875038038904 -0.0976133166097434 0.294169172435598
  -0.04696253246203441 0.1002170317045106 0.29416917243559804 0.27751617949109764

example float32 4x4, UPLO U
gradient symmetric: X is Hermitian, and Paddle gives either triangle half of the slope
attr UPLO STRING "U"
in Eigenvalues@GRAD float32 [4] -0.4 0.3 0.2 0.6
in Eigenvectors float32 [4, 4] -0.4426199 -0.5809388 -0.49138668 0.47448587 0.05804508 -0.29863137
  0.8000558 0.5170694 0.8057891 0.066641726 -0.3427275 0.47833106 -0.38913015 0.75424683
  -0.031427216 0.52792215
out X@GRAD float32 [4, 4] 0.20625633 0.13090065 0.30090803 -0.04696253 0.13090065 0.31384084
  0.06887875 0.10021703 0.30090806 0.068878755 -0.097613305 0.2941692 -0.046962544 0.10021703
  0.29416916 0.2775162

example complex64 2x2
gradient symmetric: X is Hermitian, and Paddle gives either triangle half of the slope
in Eigenvalues@GRAD float32 [2] 0.5 -0.25
in Eigenvectors complex64 [2, 2] 0.6+0j 0+0.8j 0+0.8j 0.6+0j
out X@GRAD complex64 [2, 2] 0.019999996+0j 0-0.36j 0+0.36j 0.23000002+0j
)")
