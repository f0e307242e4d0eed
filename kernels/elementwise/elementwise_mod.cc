// Remainders with the divisor's or the dividend's sign, and quotients rounded down.
#include <cmath>

#include "kernels/elementwise/arithmetic.h"
#include "kernels/elementwise/tile_loop.h"
#include "kernels/operands/element_types.h"

namespace heddle {
namespace {

struct ModFn {
  static constexpr int64_t kGrain = kHeavyGrain;
  template <typename T>
  static T Apply(T a, T b) {
    if constexpr (std::is_unsigned_v<T>) {
      return static_cast<T>(a % b);
    } else if constexpr (std::is_integral_v<T>) {
      if (b == T(-1)) return 0;  // least % -1 overflows
      const T r = static_cast<T>(a % b);
      return r != 0 && (r < 0) != (b < 0) ? static_cast<T>(r + b) : r;
    } else {
      const T r = std::fmod(a, b);
      return r != 0 && (r < 0) != (b < 0) ? r + b : r;
    }
  }
};

// Of the quotient that is cut towards zero.
struct TruncateModFn {
  static constexpr int64_t kGrain = kHeavyGrain;
  template <typename T>
  static T Apply(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      if constexpr (std::is_signed_v<T>)
        if (b == T(-1)) return 0;
      return static_cast<T>(a % b);
    } else {
      return std::fmod(a, b);
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

template <typename T>
struct Mod {
  static Status Run(KernelContext& ctx) {
    const bool cut = ctx.Bool("truncate");
    if constexpr (std::is_integral_v<T>) HEDDLE_RETURN_IF_ERROR(NoZeroDivisor(ctx.In("Y")));
    if constexpr (std::is_same_v<T, int64_t>) {
      HEDDLE_ASSIGN_OR_RETURN(const ElementType type, StoredAs(ctx.Int("elem_type"), DType::kI64));
      if (type == ElementType::kUint64)
        return RunBinaryOp<SlotsXY>(ctx, BinaryLoop<ModFn, uint64_t, uint64_t>::kLoops);
    }
    return RunBinaryOp<SlotsXY>(
        ctx, cut ? BinaryLoop<TruncateModFn, T, T>::kLoops : BinaryLoop<ModFn, T, T>::kLoops);
  }
};

template <typename T>
Status ModTile(const KernelContext& attrs, TileStep* step) {
  if (attrs.Bool("truncate")) return Unimplemented("fused loops take no truncated quotients");
  return SetTile<T, 2>(BinaryStep<ModFn>(), kHeavyGrain, step);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(elementwise_mod) {
  DefineElementwise<ModFn>(op, "x modulo y, with y's sign, or x's where the quotient is truncated");
  op.Attr("truncate", false).Attr("elem_type", 0);
  op.Kernels<Mod, float, double, float16, bfloat16, uint8_t, int8_t, int16_t, int32_t, int64_t>();
}

HEDDLE_OP(elementwise_floordiv) {
  DefineElementwise<FloorDivFn, float, double, float16, bfloat16>(op, "x / y rounded down");
  op.Kernels<Checked<FloorDivFn>::Kernel, int32_t, int64_t, uint8_t, int8_t, int16_t>();
}

HEDDLE_TILE(elementwise_mod) {
  TileOp tile = BinaryTile<ModFn>();
  tile.f32 = &ModTile<float>;
  tile.f64 = &ModTile<double>;
  return tile;
}
HEDDLE_TILE(elementwise_floordiv) { return BinaryTile<FloorDivFn>(); }
