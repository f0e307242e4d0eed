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
  op.Input("Eigenvalues@GRAD", kOptional).Input("Eigenvectors@GRAD", kOptional);
  op.Output("X@GRAD").InferShape(EigGradShape).KernelKey("Eigenvectors");
  op.Kernels<EigGrad, std::complex<float>, std::complex<double>>();
}

HEDDLE_EXAMPLES(eig, R"(
example complex128 3x3
in X complex128 [3, 3] 0.6+1.4j -1.5-1.2j 1.8+1j -0.1-0.4j 1.5-1.3j -1.2+1j -1.8-1.7j -0.4+1.5j
  -1.1+1.8j
# The order of eigenvalues and the factor of an eigenvector are not determined.
out Eigenvalues ?
out Eigenvectors ?

example complex64 4x4
in X complex64 [4, 4] -1.1+1.6j 0.8+1.4j -0.7-0.8j -1.6+0.3j 0.9-1.6j 1.7-0.6j 1+0.6j 1.4+0j
  1.2+1.6j 0.5-0.8j -1.5+0.5j 1.8-0.4j -0.6-1.3j -0.6+1.6j -1.6-0.9j 0.4-1.8j
# The order of eigenvalues and the factor of an eigenvector are not determined.
out Eigenvalues ?
out Eigenvectors ?

example float64 3x4x4
in X float64 [3, 4, 4] 0.326 0.795 0.877 0.285 0.347 0.408 0.754 0.02 0.856 0.897 0.245 0.652 0.938
  0.55 0.632 0.815 0.693 0.714 0.979 0.265 0.143 0.102 0.224 0.469 0.184 0.673 0.122 0.836 0.612
  0.51 0.734 0.082 0.591 0.571 0.775 0.204 0.041 0.449 0.367 0.428 0.917 0.061 0.306 0.958 0.53
  0.489 0.163 0.387
# The order of eigenvalues and the factor of an eigenvector are not determined.
out Eigenvalues ?
out Eigenvectors ?

example A V = V diag(w), float32
in x float32 [3, 3] -0.94 0.56 -0.92 0.85 -0.25 0.08 -0.41 0.58 0.67
op eig X=x -> Eigenvalues=w Eigenvectors=v
op cast X=x -> Out=c
attr in_dtype INT 5
attr out_dtype INT 23
op matmul_v2 X=c Y=v -> Out=p
op elementwise_mul X=v Y=w -> Out=q
op elementwise_sub X=p Y=q -> Out=d
op abs X=d -> Out=e
close 0 1e-05
out e float32 [3, 3] 4.7683716e-7 1.1944189e-7 1.1944189e-7 1.1920929e-7 3.5144318e-8 3.5144318e-8 0
  9.132661e-8 9.132661e-8

example A V = V diag(w), float64
in x float64 [3, 3] 0.51 -0.08 0.38 -0.96 -0.91 0.41 -0.05 0.14 -0.85
op eig X=x -> Eigenvalues=w Eigenvectors=v
op cast X=x -> Out=c
attr in_dtype INT 6
attr out_dtype INT 24
op matmul_v2 X=c Y=v -> Out=p
op elementwise_mul X=v Y=w -> Out=q
op elementwise_sub X=p Y=q -> Out=d
op abs X=d -> Out=e
close 0 1e-05
out e float64 [3, 3] 4.440892098500626e-16 8.326672684688674e-17 2.0816681711721685e-17
  6.661338147750939e-16 4.440892098500626e-16 4.440892098500626e-16 6.938893903907228e-18
  5.551115123125783e-17 5.551115123125783e-17
)")

HEDDLE_EXAMPLES(eigvals, R"(
example float32 4x4
in X float32 [4, 4] 0.358 0.189 0.809 0.584 0.415 0.922 0.302 0.64 0.528 0.753 0.133 0.697 0.077
  0.866 0.471 0.246
# The order of eigenvalues is not determined.
out Out ?

example complex64 4x4
in X complex64 [4, 4] 0.9-1.4j -1.5-0.9j -0.5+1.7j 0.4+1.9j -2-0.5j -0.3+1.3j -0.6-0.8j -1.1-0.3j
  -0.2+0.3j 1+1.5j 1.9+0.2j -1.1+1.3j -0.2+0.6j -1-1.7j 1.3-0.3j -0.3-1.1j
# The order of eigenvalues is not determined.
out Out ?

example float64 4x4
in X float64 [4, 4] 0.647 0.588 0.353 0.471 0.529 0.412 0.882 0.765 0.177 0.706 0.118 0.824 0.941
  0.294 0.235 0.059
# The order of eigenvalues is not determined.
out Out ?

example float32 2x2x3x2x2
in X float32 [2, 2, 3, 2, 2] 0.551 0.265 0.143 0.918 0.816 0.714 0.837 0.061 0.51 0.347 0.041 0.306
  0.878 0.163 0.245 0.775 0.123 0.633 0.694 0.755 0.408 0.796 0.673 0.184 0.531 0.592 0.857 0.735
  0.653 0.469 0.429 0.939 0.49 0.388 0.571 0.02 0.612 0.082 0.327 0.102 0.367 0.898 0.959 0.204 0.98
  0.286 0.225 0.449
# The order of eigenvalues is not determined.
out Out ?

example their sum is the trace, float32
in x float32 [3, 3] -0.94 0.56 -0.92 0.85 -0.25 0.08 -0.41 0.58 0.67
op eigvals X=x -> Out=w
op reduce_sum X=w -> Out=t
attr reduce_all BOOLEAN true
out t complex64 [] -0.52+0j

example their sum is the trace, float64
in x float64 [3, 3] 0.51 -0.08 0.38 -0.96 -0.91 0.41 -0.05 0.14 -0.85
op eigvals X=x -> Out=w
op reduce_sum X=w -> Out=t
attr reduce_all BOOLEAN true
out t complex128 [] -1.2500000000000004+0j
)")

HEDDLE_EXAMPLES(eig_grad, R"(
example complex64 4x4
gradient none: the phases of eigenvectors are free, and the example's Eigenvectors@GRAD depends on
  them
in Eigenvalues complex64 [4] 0.38244748+4.0859694j 0.9799393+1.0065134j -2.786984-0.7794377j
  -2.0754+2.0869539j
in Eigenvalues@GRAD complex64 [4] -2+0.8j -1.7-0.4j -1+1.5j -1.5-1.3j
in Eigenvectors complex64 [4, 4] -0.07179596+0.28386196j 0.72551626+0j -0.036630392-0.58965087j
  0.060325015-0.12374258j 0.6201863+0j 0.39743298-0.02576682j 0.59780526+0j 0.13918673-0.4076144j
  -0.35817027-0.48873174j -0.07552716-0.5483138j 0.17396662+0.3360706j -0.2207237+0.076652125j
  -0.40026554-0.04774288j -0.03913176+0.08441334j -0.24663095-0.2992732j 0.860774+0j
in Eigenvectors@GRAD complex64 [4, 4] -0.3-0.2j -1.9-1.4j 0.8-1.1j -0.1-1.5j -1.5-0.7j 1.6-1.1j
  1.7+0.1j -1.7+0.3j -1.8-0.2j -0.2-0.7j 0.4+0.2j -0.8+1.5j 0.7+1.4j -1.2-1.6j 0.1-0.7j 0.3-0.4j
out X@GRAD complex64 [4, 4] -1.8283778+0.21466096j 0.14890222-0.2606433j 0.36118242+0.108112715j
  0.3369018+0.7957415j -0.24146573-0.051207695j -1.1208832+0.4339505j 0.6626874+0.240203j
  -0.6246235-0.7225128j -1.1327649-0.367125j 0.23654588+0.1593377j -1.5782261+1.2554369j
  -0.33088234-0.8372537j 0.11118976-0.31061557j 0.77585953-0.36788896j -0.40803477-0.04908786j
  -1.6725134-1.3040484j

example complex128 4x4
gradient none: the phases of eigenvectors are free, and the example's Eigenvectors@GRAD depends on
  them
in Eigenvalues complex128 [4] -1.4219053102893588+2.591894367222821j
  2.6524713877251616+0.47563599876239104j 1.7074077247477577-1.7310095830985985j
  -0.7379738021835546+0.16347921711338817j
in Eigenvalues@GRAD complex128 [4] 1.2+1j -0-1.6j -1.3+0.1j -0.7-1.6j
in Eigenvectors complex128 [4, 4] -0.1458092066174271+0.5867860559681327j
  -0.0805694801311481-0.4587018574579848j 0.36215603811313046+0.05501460365137015j
  -0.4158729188274917+0.1255486456613138j 0.360634690614417+0.15522691485552903j
  0.39657515851535613-0.19303830690708598j 0.25820572304888423-0.1957897358453184j
  0.5508314202015491+0j 0.6763296124906283+0j 0.4351037430936111-0.2949927170814324j
  -0.055255228197101894-0.14278255101143209j -0.2833708510098984-0.4199050805548257j
  0.05978464827237831-0.1388275034568528j 0.5587750443298268+0j 0.858704014343278+0j
  -0.4997071390532494+0.03931232349588225j
in Eigenvectors@GRAD complex128 [4, 4] 1.4-1.1j 1.9+0.2j -0.2+1.3j -1-0.1j -1.1+0.8j 1.4+1.4j
  0.9+0.4j 1.4+0.3j 0.1-0.4j -1.8-1.4j -1.3+0.4j -1.1-1.4j -0.3-0.2j 1.3+1.2j 0.9+0.9j -1+0.1j
out X@GRAD complex128 [4, 4] 0.4545839672085743-0.7947673724784007j
  -0.9662538984278854+0.31798971003699095j -1.4177106194529978+0.33925490354006416j
  -1.3507769976440258-0.45540560717320266j -0.23058030124497184-0.7681898452101887j
  -0.8448061549032384-2.31908390213705j 0.43393145007009026-0.6775590906047159j
  -1.1756270298635667-0.6592635125701004j 2.13846430454614-0.6875566780605489j
  1.4056466143885802+0.5443237415979016j 0.32120667592792934-0.03628580536242901j
  1.0206469467031292-1.0279123573640432j -1.2461690231242384+0.07421833210070677j
  -0.4547930078544976+0.6802698513791401j -0.07047352608930973-0.023195874383509302j
  -0.7309844882332656+1.050137079977879j
)")
