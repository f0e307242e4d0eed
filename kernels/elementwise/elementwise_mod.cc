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
