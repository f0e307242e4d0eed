#include "kernels/integers/integer_result.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace heddle {
namespace {

// By value, since a byte that is stored may lie anywhere.
template <typename T, bool kOffset>
void StoreScaledRow(const int32_t* __restrict sums, int64_t n, const float* __restrict factor,
                    const float* __restrict offset, float least, float most, T* __restrict to) {
  for (int64_t c = 0; c < n; ++c) {
    float y = static_cast<float>(sums[c]) * factor[c];
    if constexpr (kOffset) y += offset[c];
    if constexpr (std::is_same_v<T, float>) {  // NaN stays NaN
      y = y < least ? least : y;
      to[c] = y > most ? most : y;
    } else {
      y = y > least ? y : least;
      y = y < most ? y : most;
      to[c] = static_cast<T>(static_cast<int32_t>(std::nearbyint(y)));
    }
  }
}

template <typename T>
void StoreScaled(const IntegerResult& result, const IntegerBlock& b) {
  float least = result.least, most = result.most;
  if constexpr (!std::is_same_v<T, float>) {
    constexpr auto kLow = static_cast<float>(std::numeric_limits<T>::min());
    constexpr auto kHigh = static_cast<float>(std::numeric_limits<T>::max());
    least = std::clamp(least, kLow, kHigh);
    most = std::clamp(most, kLow, kHigh);
  }
  for (int64_t r = 0; r < b.rows; ++r) {
    T* const to = static_cast<T*>(b.out) + r * b.out_step;
    if (b.offset != nullptr)
      StoreScaledRow<T, true>(b.sums + r * b.sums_step, b.columns, b.factor, b.offset, least, most,
                              to);
    else
      StoreScaledRow<T, false>(b.sums + r * b.sums_step, b.columns, b.factor, nullptr, least, most,
                               to);
  }
}

}  // namespace

namespace {

// Sums wrap.
void ShiftRow(const int32_t* __restrict sums, int64_t n, int32_t row_sum,
              const int32_t* __restrict shift, int32_t* __restrict to) {
  for (int64_t c = 0; c < n; ++c)
    to[c] = static_cast<int32_t>(static_cast<uint32_t>(sums[c]) -
                                 static_cast<uint32_t>(row_sum) * static_cast<uint32_t>(shift[c]));
}

// Some columns of a row at a time, whose sums without the shift stay in the cache.
void StoreShifted(const IntegerResult& result, const IntegerBlock& b) {
  constexpr int64_t kColumns = 256;
  int32_t sums[kColumns];
  for (int64_t r = 0; r < b.rows; ++r)
    for (int64_t c = 0; c < b.columns; c += kColumns) {
      const int64_t n = std::min(kColumns, b.columns - c);
      ShiftRow(b.sums + r * b.sums_step + c, n, b.row_sums[r], b.shift + c, sums);
      StoreResults(result, {1, n, sums, n, b.factor != nullptr ? b.factor + c : nullptr,
                            b.offset != nullptr ? b.offset + c : nullptr,
                            static_cast<std::byte*>(b.out) +
                                (r * b.out_step + c) * static_cast<int64_t>(SizeOf(result.dtype)),
                            b.out_step});
    }
}

}  // namespace

void StoreResults(const IntegerResult& result, const IntegerBlock& b) {
  if (b.shift != nullptr) return StoreShifted(result, b);
  switch (result.dtype) {
    case DType::kU8:
      return StoreScaled<uint8_t>(result, b);
    case DType::kI8:
      return StoreScaled<int8_t>(result, b);
    case DType::kF32:
      return StoreScaled<float>(result, b);
    default:
      for (int64_t r = 0; r < b.rows; ++r)
        std::copy_n(b.sums + r * b.sums_step, b.columns,
                    static_cast<int32_t*>(b.out) + r * b.out_step);
  }
}

}  // namespace heddle
