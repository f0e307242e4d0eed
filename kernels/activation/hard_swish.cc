#include "kernels/elementwise/tile_loop.h"
#include "kernels/elementwise/unary.h"
#include "kernels/simd/fast_math.h"

namespace heddle {
namespace {

// As in Paddle, the attributes threshold, scale and offset are there and change nothing.
struct HardSwish : UnaryOp {
  static constexpr GradReads kReads = kReadsX;
  static void Declare(OpDef& op) {
    op.Attr("threshold", 6.0).Attr("scale", 6.0).Attr("offset", 3.0);
  }
  template <typename T>
  T Forward(T x) const {
    return x * fast::Clamp(x + T(3), T(0), T(6)) / T(6);
  }
  template <typename T>
  T Grad(T x, T dy) const {
    const T shifted = x + T(3);
    const T middle = fast::Conj((T(2) * x + T(3)) / T(6));
    const T slope = fast::Select(fast::Less(shifted, T(6)), middle, T(1));
    return dy * fast::Select(fast::Less(T(0), shifted), slope, T(0));
  }
};

// The product of the other form overflows for x beyond a sixth of the greatest number.
struct HardSwishDividedFirst : UnaryOp {
  template <typename T>
  T Forward(T x) const {
    return x * (fast::Clamp(x + T(3), T(0), T(6)) / T(6));
  }
};

template <typename T>
struct HardSwishKernel {
  static Status Run(KernelContext& ctx) {
    return ctx.Bool("divide_first") ? RunMap<ForwardMap<HardSwishDividedFirst>, T>(ctx)
                                    : RunMap<ForwardMap<HardSwish>, T>(ctx);
  }
};
template <typename T>
Status HardSwishTile(const KernelContext& attrs, TileStep* step) {
  return attrs.Bool("divide_first") ? MakeMapTile<ForwardMap<HardSwishDividedFirst>, T>(attrs, step)
                                    : MakeMapTile<ForwardMap<HardSwish>, T>(attrs, step);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(hard_swish) {
  DefineUnary<HardSwish, complex64, complex128>(
      op, "x * min(max(x + 3, 0), 6) / 6; with divide_first x * (min(max(x + 3, 0), 6) / 6)");
  op.Attr("divide_first", false);
  op.Kernels<HardSwishKernel, float, double, float16, bfloat16>();
}
HEDDLE_OP(hard_swish_grad) { DefineUnaryGrad<HardSwish, complex64, complex128>(op); }

HEDDLE_TILE(hard_swish) { return {1, &HardSwishTile<float>, &HardSwishTile<double>}; }
HEDDLE_TILE(hard_swish_grad) { return UnaryGradTile<HardSwish>(); }

HEDDLE_EXAMPLES(hard_swish, R"(
example large numbers
dtypes none: what overflows depends on the dtype
in X float32 [2, 4] 3.4e38 -3.4e38 inf nan 5.6e37 5.7e37 -inf 2
out Out float32 [2, 4] inf -0 inf nan 5.6e+37 inf nan 1.6666666

example large numbers, divided first
# node HardSwish X -> Out
dtypes none: what overflows depends on the dtype
attr divide_first BOOLEAN true
in X float32 [2, 4] 3.4e38 -3.4e38 inf nan 5.6e37 5.7e37 -inf 2
out Out float32 [2, 4] 3.4e+38 -0 inf nan 5.6e+37 5.7e+37 nan 1.6666667

example float64 3x4
in X float64 [3, 4] -2.76 2.45 1.71 -0.53 -3.51 -1.27 0.22 3.95 -4.25 3.2 0.96 -2.02
out Out float64 [3, 4] -0.1104000000000001 2.225416666666667 1.34235 -0.2181833333333333 -0
  -0.3661833333333333 0.11806666666666667 3.9500000000000006 -0 3.2000000000000006
  0.6335999999999999 -0.32993333333333336

example complex128 4x3
in X complex128 [4, 3] 0.8+0.6j 1.5-1.5j 0.9-0.9j -1.1+1.8j 1.5-0.7j -1.2-0.2j 1+1.3j -0.3-1.2j
  -1.4-0.1j 0.8+0.1j 0.6+1.3j 0.2-0.6j
out Out complex128 [4, 3] 0.4466666666666667+0.45999999999999996j 0.75-1.5j
  0.44999999999999996-0.7200000000000001j -0.8883333333333333+0.23999999999999996j
  1.0433333333333334-0.6999999999999998j -0.3666666666666667-0.020000000000000007j
  0.38499999999999995+1.0833333333333333j -0.375-0.48000000000000004j
  -0.3749999999999999-0.003333333333333341j 0.505+0.07666666666666667j
  0.07833333333333332+0.9100000000000001j 0.04666666666666669-0.34j

example float32 3x4
in X float32 [3, 4] 4.22 -4.23 0.38 3.45 2.68 -2.69 -1.16 -0.39 1.91 -1.93 -3.46 1.14
out Out float32 [3, 4] 4.22 -0 0.21406667 3.45 2.537067 -0.13898331 -0.3557333 -0.16965 1.5630165
  -0.34418333 -0 0.78659993

example float32 1x4x3x2
in X float32 [1, 4, 3, 2] 0.46197498 0.4914 0.21040002 0.045 0.107475 0.31799996 -0.183275
  -0.110599995 -0.040350005 0.001 -0.04065 -0.18099998 0.36617497 0.515 0.16375002 -0.043
  -0.0013500042 0.13899998 -0.030775 0.0246 -0.045649994 -0.087 -0.087 -0.087
out Out float32 [1, 4, 3, 2] 0.26655766 0.28594565 0.112578034 0.022837503 0.055662647 0.17585397
  -0.086039215 -0.05326127 -0.019903649 0.0005001667 -0.020049596 -0.085039824 0.20543484 0.30170414
  0.086344026 -0.021191835 -0.0006746983 0.072720155 -0.01522965 0.012400859 -0.022477677 -0.0422385
  -0.0422385 -0.0422385

example complex64 3x4
in X complex64 [3, 4] -2.76+0.8j 2.45+0.3j 1.71+0.5j -0.53-0.7j -3.51-0.8j -1.27+0.6j 0.22-0.3j
  3.95+0.1j -4.25-0.5j 3.2+0.1j 0.96-0.2j -2.02+0.4j
out Out complex64 [3, 4] -0.21706669-0.33600003j 2.2104166+0.39499998j 1.3006834+0.535j
  -0.29985-0.22633335j 0-0j -0.4261833+0.046000015j 0.10306666-0.172j 3.9500003+0.1j 0-0j 3.2+0.1j
  0.62693334-0.16399999j -0.35660002-0.06933334j

example float64 3x4, offset 2.0
attr offset FLOAT 2.0
in X float64 [3, 4] -2.76 2.45 1.71 -0.53 -3.51 -1.27 0.22 3.95 -4.25 3.2 0.96 -2.02
out Out float64 [3, 4] -0.1104000000000001 2.225416666666667 1.34235 -0.2181833333333333 -0
  -0.3661833333333333 0.11806666666666667 3.9500000000000006 -0 3.2000000000000006
  0.6335999999999999 -0.32993333333333336
)")

HEDDLE_EXAMPLES(hard_swish_grad, R"(
example float64 3x4
in Out@GRAD float64 [3, 4] -0.6 -0.6 -0.7 0.5 -0.5 0.3 0.2 -0.2 0.7 -0 -0.5 0.7
in X float64 [3, 4] 0.38 1.91 -1.93 -1.16 4.22 -4.23 -3.46 -0.39 2.68 1.14 -2.69 3.45
out X@GRAD float64 [3, 4] -0.37599999999999995 -0.682 0.10033333333333332 0.05666666666666668 -0.5 0
  0 -0.074 0.9753333333333333 -0 0.19833333333333333 0.7

example complex64 4x3
in Out@GRAD complex64 [4, 3] 0.6-0.4j -1.5-1.3j 1.8+1j -0.1-1.7j 1.5+1.5j -1.2+1.8j -1.8+1.7j
  -0.4-0.3j -1.1-1.9j 1.4+1.9j -1.2-0.6j 1+0.8j
in X complex64 [4, 3] -0.6+0.8j -1.9-0.4j 1.4+1.5j 0.6-1.3j 1.1-0.3j 0.2-1.9j 1.5+0.8j 1.6-0.1j
  -2-1.5j -1.7+1.6j -1+1.7j -1.5-1.7j
out X@GRAD complex64 [4, 3] 0.073333316-0.28j 0.37333333-0.0266667j 2.2400002+0.06666678j
  0.6666666-1.2333333j 1.15+1.4499999j -1.82+0.26000005j -1.3466666+2.18j -0.40333334-0.32333332j
  1.1333333-0.23333335j 0.91999996-0.87333333j -0.5400001+0.58000004j -0.45333338+0.5666667j

example float32 3x4
in Out@GRAD float32 [3, 4] -0.6 -0.6 -0.7 0.5 -0.5 0.3 0.2 -0.2 0.7 -0 -0.5 0.7
in X float32 [3, 4] 0.38 1.91 -1.93 -1.16 4.22 -4.23 -3.46 -0.39 2.68 1.14 -2.69 3.45
out X@GRAD float32 [3, 4] -0.37600002 -0.68200004 0.10033332 0.056666672 -0.5 0 0 -0.074 0.9753334
  -0 0.19833334 0.7
)")
