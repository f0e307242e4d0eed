// eig and eigvals: eigenvalues and eigenvectors of general square matrices, as complex numbers.
#include <Eigen/Eigenvalues>

#include "kernels/linalg/linalg_factor.h"

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
  Decomposition d;
  const auto take = [&](const auto& solver) {
    d.converged = solver.info() == Eigen::Success;
    if (!d.converged) return;
    d.values = solver.eigenvalues();
    if (vectors) d.vectors = solver.eigenvectors();
  };
  if constexpr (std::is_floating_point_v<T>)
    take(Eigen::EigenSolver<Eigen::MatrixXd>(a.template cast<double>(), vectors));
  else
    take(Eigen::ComplexEigenSolver<WideMatrix>(a.template cast<Wide>(), vectors));
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
Status Solve(KernelContext& ctx, Tensor& values, Tensor* vectors) {
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
    return Solve<T>(ctx, ctx.Out("Eigenvalues"), ctx.OutOpt("Eigenvectors"));
  }
};
template <typename T>
struct Eigvals {
  static Status Run(KernelContext& ctx) { return Solve<T>(ctx, ctx.Out("Out"), nullptr); }
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
      for (int64_t r = 0; r < d.rows; ++r)
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
out Eigenvalues complex128 [3] -1.665314394741967+3.4290778527012287j
  0.6622508749034332+0.48975315674971476j 2.0030635198385327-2.0188310094509423j
out Eigenvectors complex128 [3, 3] -0.20963737447127143-0.3820496271873749j 0.7273445298018343+0j
  0.1266393238275937-0.5845568759769337j 0.2570171703185414+0.07392464805400571j
  0.06137973065079057-0.33824601246922925j 0.6458502676631248+0j 0.8593995427985291+0j
  -0.027815953875991978-0.5933113612524368j -0.474477716385437-0.0020171320502789525j

example complex64 4x4
in X complex64 [4, 4] -1.1+1.6j 0.8+1.4j -0.7-0.8j -1.6+0.3j 0.9-1.6j 1.7-0.6j 1+0.6j 1.4+0j
  1.2+1.6j 0.5-0.8j -1.5+0.5j 1.8-0.4j -0.6-1.3j -0.6+1.6j -1.6-0.9j 0.4-1.8j
out Eigenvalues complex64 [4] -3.4170184+1.7222927j 0.79091007+0.9416429j 2.3608499+0.2907174j
  -0.23474255-3.2546525j
out Eigenvectors complex64 [4, 4] -0.016411021+0.5530144j -0.48984683-0.089317635j
  0.031865478+0.15037347j 0.035806015-0.2944279j -0.14254804-0.29059327j -0.08027712-0.33283573j
  0.8810865+0j -0.18144025+0.115374744j 0.7412106+0j 0.027059868-0.54078597j 0.16095707+0.055137273j
  0.25307807+0.4288684j -0.14785792+0.13373953j 0.5845227+0j 0.1322249+0.39195442j 0.78601635+0j

example float64 3x4x4
in X float64 [3, 4, 4] 0.326 0.795 0.877 0.285 0.347 0.408 0.754 0.02 0.856 0.897 0.245 0.652 0.938
  0.55 0.632 0.815 0.693 0.714 0.979 0.265 0.143 0.102 0.224 0.469 0.184 0.673 0.122 0.836 0.612
  0.51 0.734 0.082 0.591 0.571 0.775 0.204 0.041 0.449 0.367 0.428 0.917 0.061 0.306 0.958 0.53
  0.489 0.163 0.387
out Eigenvalues complex128 [3, 4] 2.277912543659919+0j -0.6176974814773882+0j -0.2526564788440907+0j
  0.3864414166615586+0j 1.7862726477382278+0j -0.13132797218301182+0j
  -0.32797233777760765+0.08637047247195043j -0.32797233777760765-0.08637047247195043j
  1.825288972021447+0j 0.3943457278711506+0j -0.24331734994629878+0.41906446404050934j
  -0.24331734994629878-0.41906446404050934j
out Eigenvectors complex128 [3, 4, 4] -0.4586147532732904+0j -0.37501795731749127+0j
  0.781886849587182+0j -0.20928289227411065+0j -0.3073048325282308+0j -0.4627306564678429+0j
  -0.39428031019923254+0j -0.4242440015083395+0j -0.5340682742603562+0j 0.8001980697380302+0j
  -0.0015555322748031035+0j 0.08518458323322682+0j -0.6403181446854678+0j 0.07017777740699715+0j
  -0.48290120288851074+0j 0.8769043761807536+0j -0.6885294521405443+0j 0.7836560067878527+0j
  0.6278474297030304+0j 0.6278474297030304-0j -0.2602331787946149+0j -0.12390449541004858+0j
  -0.39463856600413644-0.12195620353016981j -0.39463856600413644+0.12195620353016981j
  -0.43982497093215717+0j -0.5989187142872159+0j -0.48137696621409753+0.15360079395851675j
  -0.48137696621409753-0.15360079395851675j -0.5145482301339875+0j 0.10875344922827125+0j
  0.42273633199618654-0.034230071023004724j 0.42273633199618654+0.034230071023004724j
  0.5994340201557783+0j -0.4637338577896881+0j -0.4742787434064296-0.10057840698902418j
  -0.4742787434064296+0.10057840698902418j 0.3074135434850384+0j 0.6631133503725813+0j
  -0.16563630817627523-0.34736228534484237j -0.16563630817627523+0.34736228534484237j
  0.6239158916283407+0j -0.4653263125358544+0j 0.6651139639014167+0j 0.6651139639014167-0j
  0.3961120156413676+0j 0.35875202655724164+0j 0.08315112989545288+0.40933729167346183j
  0.08315112989545288-0.40933729167346183j
)")

HEDDLE_EXAMPLES(eigvals, R"(
example float32 4x4
in X float32 [4, 4] 0.358 0.189 0.809 0.584 0.415 0.922 0.302 0.64 0.528 0.753 0.133 0.697 0.077
  0.866 0.471 0.246
out Out complex64 [4] 2.0251424+0j 0.18202454+0j -0.058619887+0j -0.48954737+0j

example complex64 4x4
in X complex64 [4, 4] 0.9-1.4j -1.5-0.9j -0.5+1.7j 0.4+1.9j -2-0.5j -0.3+1.3j -0.6-0.8j -1.1-0.3j
  -0.2+0.3j 1+1.5j 1.9+0.2j -1.1+1.3j -0.2+0.6j -1-1.7j 1.3-0.3j -0.3-1.1j
out Out complex64 [4] 0.02739358-2.8498702j -2.2379177-0.44328505j 3.1299217-0.20579499j
  1.2806014+2.4989505j

example float64 4x4
in X float64 [4, 4] 0.647 0.588 0.353 0.471 0.529 0.412 0.882 0.765 0.177 0.706 0.118 0.824 0.941
  0.294 0.235 0.059
out Out complex128 [4] 2.0071951528623266+0j -0.08314520580497697+0.20837271673653504j
  -0.08314520580497697-0.20837271673653504j -0.6049047412523735+0j

example float32 2x2x3x2x2
in X float32 [2, 2, 3, 2, 2] 0.551 0.265 0.143 0.918 0.816 0.714 0.837 0.061 0.51 0.347 0.041 0.306
  0.878 0.163 0.245 0.775 0.123 0.633 0.694 0.755 0.408 0.796 0.673 0.184 0.531 0.592 0.857 0.735
  0.653 0.469 0.429 0.939 0.49 0.388 0.571 0.02 0.612 0.082 0.327 0.102 0.367 0.898 0.959 0.204 0.98
  0.286 0.225 0.449
out Out complex64 [2, 2, 3, 2] 0.46697944+0j 1.0020206+0j 1.2988048+0j -0.42180473+0j 0.56494266+0j
  0.25105733+0j 1.0328667+0j 0.62013316+0j -0.29527378+0j 1.1732738+0j 1.0364404+0j -0.44444042+0j
  -0.08654708+0j 1.3525472+0j 0.32520282+0j 1.2667972+0j 0.78109217+0j -0.27109218+0j 0.66004944+0j
  0.05395049+0j 1.2170709+0j -0.6460708+0j 1.081706+0j 0.34729397+0j
)")

HEDDLE_EXAMPLES(eig_grad, R"(
example complex64 4x4
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
