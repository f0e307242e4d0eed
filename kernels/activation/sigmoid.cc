#include "kernels/elementwise/tile_loop.h"
#include "kernels/elementwise/unary.h"
#include "kernels/gemm/gemm_epilogue.h"
#include "kernels/simd/fast_math.h"

namespace heddle {
namespace {

struct Sigmoid : UnaryOp {
  static constexpr GradReads kReads = kReadsOut;
  static bool Many(const float* x, int64_t n, float* y) {
    ActivateMany(Activation::kSigmoid, 0, x, n, y);
    return true;
  }
  template <typename T>
  T Forward(T x) const {
    return fast::Sigmoid(x);
  }
  template <typename T>
  T Grad(T y, T dy) const {
    return dy * fast::Conj(y * (T(1) - y));
  }
};

struct SigmoidGradGrad : UnaryOp {
  static constexpr Key kIns[] = {"Out", "fwd_grad_out", "grad_x@GRAD"};
  static constexpr Key kOuts[] = {"Out@GRAD", "fwd_grad_out@GRAD"};
  template <typename T>
  std::array<T, 2> operator()(T y, T dy, T ddx) const {
    return {(T(1) - T(2) * y) * dy * ddx, y * (T(1) - y) * ddx};
  }
};

// Gradient of SigmoidGradGrad; dy_new and ddy_new belong to its outputs Out@GRAD and
// fwd_grad_out@GRAD.
struct SigmoidTripleGrad : UnaryOp {
  static constexpr Key kIns[] = {"Out", "fwd_grad_out", "grad_grad_x", "grad_out@GRAD",
                                 "grad_grad_out@GRAD"};
  static constexpr Key kOuts[] = {"Out@GRAD", "fwd_grad_out@GRAD", "grad_grad_x@GRAD"};
  template <typename T>
  std::array<T, 3> operator()(T y, T dy, T ddx, T dy_new, T ddy_new) const {
    const T slope = T(1) - T(2) * y;
    return {ddy_new * slope * ddx - T(2) * ddx * dy * dy_new, slope * ddx * dy_new,
            slope * dy * dy_new + y * (T(1) - y) * ddy_new};
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(sigmoid) { DefineUnary<Sigmoid, complex64, complex128>(op, "1 / (1 + exp(-x))"); }
HEDDLE_OP(sigmoid_grad) { DefineUnaryGrad<Sigmoid, complex64, complex128>(op); }
HEDDLE_OP(sigmoid_grad_grad) { DefineMap<SigmoidGradGrad, complex64, complex128>(op); }
HEDDLE_OP(sigmoid_triple_grad) { DefineMap<SigmoidTripleGrad, complex64, complex128>(op); }

HEDDLE_TILE(sigmoid) { return UnaryTile<Sigmoid>(); }
HEDDLE_TILE(sigmoid_grad) { return UnaryGradTile<Sigmoid>(); }

HEDDLE_EXAMPLES(sigmoid_grad, R"(
example float64 1x3x1x1
in Out float64 [1, 3, 1, 1] 0.4778879376371086 0.4804617017412145 0.4145292415300664
in Out@GRAD float64 [1, 3, 1, 1] -0.5 -0.9 0.2
out X@GRAD float64 [1, 3, 1, 1] -0.1247555283490298 -0.22465642941103567 0.048538949889314856

example float64 3x4
in Out float64 [3, 4] 0.5448788923735801 0.7875131558774608 0.17946151940732682 0.27687819487561016
  0.9530238543217163 0.038052247070992105 0.06537533342557263 0.40371730070321216 0.8676111264579346
  0.676995856238523 0.11007257436250302 0.9205614508160216
in Out@GRAD float64 [3, 4] -0.6 -0.6 -0.7 0.5 -0.5 0.3 0.2 -0.2 0.7 -0 -0.5 0.7
out X@GRAD float64 [3, 4] -0.14879153101159234 -0.10040171111842974 -0.10307855772153833
  0.1001083300390169 -0.022384693707748173 0.010981282069152082 0.012220279841013567
  -0.048145928363224864 0.08040344179302988 -0 -0.04897830136785713 0.05118964626126614

example complex64 4x3
in Out complex64 [4, 3] 0.13010848+0j 0.9465462+0.37003702j 0.5-0.18251424j 0.46566337-0.3055009j
  0.08689735-0.125132j 0.56831145-0.30237833j 0.79019773+0.05049469j 0.04453214-0.13733731j
  -0.00095799664-0.22911824j 0.6498419+0.49184886j 0.21764897-0.15164645j 0.8183328-0.13445616j
in Out@GRAD complex64 [4, 3] 0.083333336+0j*12
out X@GRAD complex64 [4, 3] 0.009431688+0j 0.015626991+0.027539771j 0.023609288+0j
  0.02851265+0.0017483111j 0.007917019+0.008615393j 0.028063852-0.0034426502j
  0.014027916+0.0024422407j 0.0051175477+0.010425455j 0.004294688+0.01912977j
  0.039121892+0.012283262j 0.016106213+0.0071362555j 0.013895225-0.0071336343j

example float32 3x4
in Out float32 [3, 4] 0.5448789 0.78751314 0.17946152 0.2768782 0.95302385 0.038052246 0.065375336
  0.4037173 0.8676111 0.6769959 0.110072576 0.92056143
in Out@GRAD float32 [3, 4] -0.6 -0.6 -0.7 0.5 -0.5 0.3 0.2 -0.2 0.7 -0 -0.5 0.7
out X@GRAD float32 [3, 4] -0.14879154 -0.10040172 -0.10307855 0.100108325 -0.022384696 0.010981282
  0.012220281 -0.04814593 0.08040345 -0 -0.048978303 0.051189654
)")

HEDDLE_EXAMPLES(sigmoid_grad_grad, R"(
example float64 scalar
in Out float64 [] 0.573
in fwd_grad_out float64 [] 0.573
in grad_x@GRAD float64 [] -0.6
out Out@GRAD float64 [] 0.05019479999999996
out fwd_grad_out@GRAD float64 [] -0.1468026

example complex64 4x3
in Out complex64 [4, 3] 0.2-0.8j 1.2+0.1j -2+0j 0.9+1.8j 0.1+1.1j -0.9-2j 0.8-0.7j 0.1-0.6j 1+1.3j
  0.3+0.8j 1.1+1.2j -1.3-1.7j
in fwd_grad_out complex64 [4, 3] 1.9+1j 1.9-1.6j 0.9+0.1j -1.3-1.6j -0.2+1.4j -0.5+1.9j 1.9-0.2j
  -1.3-1j 1.2-1.1j 0+1.4j -1.3+0.9j -0.7+1.4j
in grad_x@GRAD complex64 [4, 3] 0.1+0.8j -1.8+1.4j -1.3+0.4j -1.1+0.3j -0.3-0.4j 1.3-1.4j 0.9+0.4j
  -1-1.4j -1.1-0.2j 0.2+1.2j 1.3+0.9j -0.1+0.1j
out Out@GRAD complex64 [4, 3] -2.958-0.004000038j 2.7599995-7.5200005j -6.0499997+1.1500001j
  3.4039998-7.972j -0.25199997-1.636j -7.0520005+16.915998j -1.8859999+2.1579995j -3.4640002+2.136j
  4.0620003+3.0340002j -0.22399992+2.8000002j 3+6j 0.46200004-0.9940001j
out fwd_grad_out@GRAD complex64 [4, 3] 0.46400005+0.59200007j 0.61000013-0.07000005j 7.7999997-2.4j
  -3.2309997+2.5829997j -0.038000047-0.78400004j -4.863-10.486j 0.41699997+0.638j -1.122-0.14999998j
  -2.119+1.092j -0.214+1.0840001j 3.025-0.67499995j 0.622+0.602j
)")

HEDDLE_EXAMPLES(sigmoid_triple_grad, R"(
example float64 scalar
in Out float64 [] 0.573
in fwd_grad_out float64 [] -0.0118
in grad_grad_out@GRAD float64 [] 0.7
in grad_grad_x float64 [] 0.14
in grad_out@GRAD float64 [] -0.4
out Out@GRAD float64 [] -0.01562959999999999
out fwd_grad_out@GRAD float64 [] 0.008175999999999996
out grad_grad_x@GRAD float64 [] 0.17058058

example float64 4x3
in Out float64 [4, 3] 0.518 0.589 0.412 0.447 0.695 0.306 0.341 0.483 0.624 0.553 0.377 0.659
in fwd_grad_out float64 [4, 3] -0.0091 -0.0134 -0.0178 -0.0308 -0.0221 -0.0003 0.004 -0.0439 -0.0265
  -0.0396 -0.0047 -0.0352
in grad_grad_out@GRAD float64 [4, 3] -0.7 -0 -0.6 -0.6 -0.6 -0.8 0.8 0.2 -0.4 0.5 0.6 -0.2
in grad_grad_x float64 [4, 3] 0.068 0.0826 0.0898 0.1117 0.1336 0.0753 0.1044 0.0607 0.1409 0.0971
  0.1263 0.119
in grad_out@GRAD float64 [4, 3] -0.2 -0.7 0.5 -0.2 -0.3 -0.2 -0.4 -1 -0.3 -0.6 -0.1 0.1
out Out@GRAD float64 [4, 3] 0.001466080000000004 -0.0015495760000000002 -0.007884440000000005
  -0.008480263999999998 0.029490863999999988 -0.023382156000000005 0.02689344 -0.0049166999999999995
  0.011736970000000003 -0.009760492000000006 0.018523157999999994 0.008406160000000003
out fwd_grad_out@GRAD float64 [4, 3] 0.0004896000000000005 0.010291959999999998 0.007902400000000002
  -0.0023680399999999996 0.015631199999999994 -0.005843280000000001 -0.01327968
  -0.002063800000000002 0.01048296 0.006175560000000005 -0.00310698 -0.003784200000000001
out grad_grad_x@GRAD float64 [4, 3] -0.17483872 -0.0016696399999999994 -0.14692 -0.14766163999999996
  -0.12977070000000002 -0.16986792 0.17926640000000002 0.0514348 -0.09582120000000001 0.12107694
  0.14103822 -0.043824440000000006

example float32 scalar
in Out float32 [] 0.573
in fwd_grad_out float32 [] -0.0118
in grad_grad_out@GRAD float32 [] 0.7
in grad_grad_x float32 [] 0.14
in grad_out@GRAD float32 [] -0.4
out Out@GRAD float32 [] -0.015629599
out fwd_grad_out@GRAD float32 [] 0.008176002
out grad_grad_x@GRAD float32 [] 0.17058058
)")

HEDDLE_EXAMPLES(sigmoid, R"(
example float32
in X float32 [2, 3] 1.62 0.09 1.08 3.47 -2.32 -1.31
out Out float32 [2, 3] 0.8347951 0.52248484 0.746494 0.969822 0.089480065 0.21248686

example float64
in X float64 [2, 3] 3.51 -0.54 1.18 -2.97 0.8 0.72
out Out float64 [2, 3] 0.9709709641636592 0.3681875822638983 0.7649478037637647 0.048799722998799984
  0.6899744811276125 0.6726070170677604
)")
