#include "kernels/elementwise/tile_loop.h"
#include "kernels/elementwise/unary.h"
#include "kernels/simd/fast_math.h"

namespace heddle {
namespace {

struct Softsign : UnaryOp {
  static constexpr GradReads kReads = kReadsX;
  template <typename T>
  T Forward(T x) const {
    return x / (T(1) + T(std::abs(x)));
  }
  template <typename T>
  T Grad(T x, T dy) const {
    const auto a = std::abs(x);
    const T d = T(1) + T(a);
    if constexpr (kIsComplex<T>) {  // |x| depends on x and on its conjugate
      if (a == 0) return dy;
      return (dy * T(1 + a / 2) - std::conj(dy) * x * x / (2 * a)) / (d * d);
    } else {
      return dy / (d * d);
    }
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(softsign) { DefineUnary<Softsign, complex64, complex128>(op, "x / (1 + |x|)"); }
HEDDLE_OP(softsign_grad) { DefineUnaryGrad<Softsign, complex64, complex128>(op); }

HEDDLE_TILE(softsign) { return UnaryTile<Softsign>(); }
HEDDLE_TILE(softsign_grad) { return UnaryGradTile<Softsign>(); }

HEDDLE_EXAMPLES(softsign, R"(
example float32 7
in X float32 [7] -1.09 0.64 -0.66 1.07 0.2 -0.23 -1.52
out Out float32 [7] -0.5215311 0.3902439 -0.39759037 0.51690817 0.16666666 -0.18699187 -0.6031746

example float64 4x3
in X float64 [4, 3] 0.08 0.38 -0.38 -0.23 0.84 -0.84 -0.69 -0.08 0.54 0.23 -0.53 0.69
out Out float64 [4, 3] 0.07407407407407407 0.2753623188405797 -0.2753623188405797
  -0.1869918699186992 0.4565217391304348 -0.4565217391304348 -0.40828402366863903
  -0.07407407407407407 0.35064935064935066 0.1869918699186992 -0.3464052287581699
  0.40828402366863903

example complex64 4x3
in X complex64 [4, 3] -1.1-0.6j 0.8-0.6j -0.7-1.6j -1.6+0.4j 0.9+1.6j 1.7+1.4j 1-0.8j 1.4+0.3j
  1.2-1.6j 0.5-0.6j -1.5+0.6j 1.8+0j
out Out complex64 [4, 3] -0.48823866-0.266312j 0.4-0.3j -0.2548768-0.58257556j
  -0.6039463+0.15098658j 0.3173757+0.56422347j 0.5308732+0.43718967j 0.43847632-0.35078108j
  0.57570946+0.12336632j 0.4-0.53333336j 0.28073722-0.33688468j -0.57349324+0.22939731j 0.6428572+0j

example float32 scalar
in X float32 [] 0.101
out Out float32 [] 0.0917348
)")

HEDDLE_EXAMPLES(softsign_grad, R"(
example float64 7
in Out@GRAD float64 [7] -0.4 0.6 -0.3 -0.6 -0.8 0.9 0.7
in X float64 [7] -1.52 -0.23 1.07 0.2 -1.09 -0.66 0.64
out X@GRAD float64 [7] -0.06298815822625346 0.396589331746976 -0.0700133025274802
  -0.41666666666666663 -0.18314599024747605 0.32660763536071996 0.26026174895895293

example float64 4x3
in Out@GRAD float64 [4, 3] -0.6 -0.6 -0.7 0.5 -0.5 0.3 0.2 -0.2 0.7 -0 -0.5 0.7
in X float64 [4, 3] -0.08 0.23 -0.38 0.08 -0.84 -0.69 -0.53 0.84 0.69 -0.23 0.54 0.38
out X@GRAD float64 [4, 3] -0.51440329218107 -0.396589331746976 -0.3675698382692712
  0.4286694101508916 -0.14768431001890361 0.10503833899373273 0.08543722499893204
  -0.059073724007561446 0.245089457652043 -0 -0.21082813290605498 0.3675698382692712

example complex64 4x3
in Out@GRAD complex64 [4, 3] 0.083333336+0j*12
in X complex64 [4, 3] 0.9-0.2j -1.5-1j -0.5+1.3j 0.4-0.3j -2-1.4j -0.3-0.9j -0.6+1.7j -1.1+1.9j
  -0.2-0.5j 1+1.3j 1.9-0.8j -1.1-0.3j
out X@GRAD complex64 [4, 3] 0.02353844+0.0044044903j 0.016492587-0.008826564j
  0.03221379+0.006792103j 0.043703705+0.00888889j 0.01268615-0.0080706j 0.040682033-0.0062456666j
  0.027614055+0.0060020625j 0.021580778+0.0077692214j 0.05154971-0.0065375566j
  0.024274752-0.009476282j 0.011650759+0.0065551763j 0.01962978-0.0052657756j

example float32 7
in Out@GRAD float32 [7] -0.4 0.6 -0.3 -0.6 -0.8 0.9 0.7
in X float32 [7] -1.52 -0.23 1.07 0.2 -1.09 -0.66 0.64
out X@GRAD float32 [7] -0.062988155 0.39658937 -0.07001329 -0.41666666 -0.18314597 0.32660758
  0.26026174
)")
