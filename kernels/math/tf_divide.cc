// Quotients and remainders: floored ones follow the divisor's sign, truncated ones the dividend's.
#include "kernels/elementwise/slots.h"

namespace heddle {
namespace {

struct FloorDiv {
  static constexpr int64_t kGrain = kElementGrain;
  template <typename T>
  static T Apply(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      const T q = DivFn::Apply(a, b);
      if constexpr (std::is_signed_v<T>) {
        if (b == T(-1)) return q;
        return static_cast<T>(a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q);
      }
      return q;
    } else {
      return std::floor(a / b);
    }
  }
};

struct FloorMod {
  static constexpr int64_t kGrain = kHeavyGrain;
  template <typename T>
  static T Apply(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      if constexpr (std::is_signed_v<T>)
        if (b == T(-1)) return 0;  // least % -1 overflows
      const T r = static_cast<T>(a % b);
      return static_cast<T>(r != 0 && (r < 0) != (b < 0) ? r + b : r);
    } else {
      const T r = std::fmod(a, b);
      return r != 0 && (r < 0) != (b < 0) ? r + b : r;
    }
  }
};

struct TruncateDiv {
  static constexpr int64_t kGrain = kElementGrain;
  template <typename T>
  static T Apply(T a, T b) {
    if constexpr (std::is_integral_v<T>)
      return DivFn::Apply(a, b);
    else
      return std::trunc(a / b);
  }
};

struct TruncateMod {
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

template <typename F>
void DefineQuotient(OpDef& op, const char* doc) {
  DefineTfBinary<F, float, double, float16, bfloat16>(op, doc);
  AddTfQuotients<F, uint8_t, int8_t, int16_t, int32_t, int64_t>(op);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(tf_floor_div) { DefineQuotient<FloorDiv>(op, "x / y rounded down"); }
HEDDLE_OP(tf_floor_mod) { DefineQuotient<FloorMod>(op, "x - floor(x / y) y"); }
HEDDLE_OP(tf_truncate_div) { DefineQuotient<TruncateDiv>(op, "x / y rounded towards zero"); }
HEDDLE_OP(tf_truncate_mod) { DefineQuotient<TruncateMod>(op, "x - trunc(x / y) y"); }
