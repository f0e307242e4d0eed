// Remainder and quotient with the divisor's sign: elementwise_mod and elementwise_floordiv.
#include <cmath>

#include "kernels/elementwise/arithmetic.h"
#include "kernels/elementwise/tile_loop.h"

namespace heddle {
namespace {

struct ModFn {
  static constexpr int64_t kGrain = kHeavyGrain;
  template <typename T>
  static T Apply(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      if (b == T(-1)) return 0;
      const T r = static_cast<T>(a % b);
      return r != 0 && (r < 0) != (b < 0) ? static_cast<T>(r + b) : r;
    } else {
      const T r = std::fmod(a, b);
      return r != 0 && (r < 0) != (b < 0) ? r + b : r;
    }
  }
};

struct FloorDivFn {
  static constexpr int64_t kGrain = kHeavyGrain;
  template <typename T>
  static T Apply(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      const T q = DivFn::Apply(a, b);
      return b != T(-1) && a % b != 0 && (a < 0) != (b < 0) ? static_cast<T>(q - 1) : q;
    } else {
      return std::floor(a / b);
    }
  }
};

template <typename F>
struct Checked {
  template <typename T>
  struct Kernel {
    static Status Run(KernelContext& ctx) {
      HEDDLE_RETURN_IF_ERROR(NoZeroDivisor(ctx.In("Y")));
      return RunBinaryOp<SlotsXY>(ctx, BinaryLoop<F, T, T>::kLoops);
    }
  };
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(elementwise_mod) {
  DefineElementwise<ModFn, float, double, float16, bfloat16>(op, "x modulo y, with y's sign");
  op.Kernels<Checked<ModFn>::Kernel, int32_t, int64_t>();
}

HEDDLE_OP(elementwise_floordiv) {
  DefineElementwise<FloorDivFn, float, double, float16, bfloat16>(op, "x / y rounded down");
  op.Kernels<Checked<FloorDivFn>::Kernel, int32_t, int64_t, uint8_t, int8_t, int16_t>();
}

HEDDLE_TILE(elementwise_mod) { return BinaryTile<ModFn>(); }
HEDDLE_TILE(elementwise_floordiv) { return BinaryTile<FloorDivFn>(); }

HEDDLE_EXAMPLES(elementwise_mod, R"(
example float32 2x2x2
in X float32 [2, 2, 2] 3*8
in Y float32 [] 2
out Out float32 [2, 2, 2] 1*8

example int32 4x1
in X int32 [4, 1] -11 -7 23 -17
in Y int32 [4, 1] 3 2 4 1
out Out int32 [4, 1] 1 1 3 0

example int64 2
in X int64 [2] 3 -14
in Y int64 [1] 5
out Out int64 [2] 3 1

example int32 scalar
in X int32 [] 6964
in Y int32 [] 286
out Out int32 [] 100

example float64 2x2x2
in X float64 [2, 2, 2] 3*8
in Y float64 [] 2
out Out float64 [2, 2, 2] 1*8
)")

HEDDLE_EXAMPLES(elementwise_floordiv, R"(
example int64 2x2x2
in X int64 [2, 2, 2] 3*8
in Y int64 [] 2
out Out int64 [2, 2, 2] 1*8

example int64 3x4, axis 0
attr axis INT 0
in X int64 [3, 4] -7 -23 -23 -23 -17 0 -19 -3 -11 -19 -11 -16
in Y int64 [3] 1 1 1
out Out int64 [3, 4] -7 -23 -23 -23 -17 0 -19 -3 -11 -19 -11 -16

example int32 5x1x3x1
in X int32 [5, 1, 3, 1] 24 -4 -20 -27 3 1 -26 -27 -2 18 13 14 1 0 9
in Y int32 [] -6
out Out int32 [5, 1, 3, 1] -4 0 3 4 -1 -1 4 4 0 -3 -3 -3 -1 0 -2

example int32 4x4
in X int32 [4, 4] 161*16
in Y int32 [4, 4] 2*16
out Out int32 [4, 4] 80*16
)")
