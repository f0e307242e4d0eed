// Products of bfloat16 for AVX512_BF16. This source alone is built for such processors.
#include "kernels/simd/bf16.h"

#ifdef __AVX512BF16__

#include <cstring>
#include <utility>

#include "kernels/simd/activation.h"
#include "kernels/simd/avx512_vector.h"

namespace heddle::simd {
namespace {

using V = Avx512;
constexpr int kLanes = V::kLanes, kVectors = kBf16Panel / kLanes;
using Sums = __m512[kBf16Rows][kVectors];

// The number of columns in vector v.
HEDDLE_SIMD_INLINE int ColumnsOf(const Bf16Tile& t, int v) {
  const int left = t.columns - v * kLanes;
  return left < 0 ? 0 : left < kLanes ? left : kLanes;
}

HEDDLE_SIMD_INLINE void MultiplyPairs(const Bf16Tile& t, Sums& sum) {
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; ++v) {
    const __m512 first =
        t.bias == nullptr ? V::Zero() : V::LoadSome(t.bias + v * kLanes, ColumnsOf(t, v));
#pragma GCC unroll 16
    for (int r = 0; r < kBf16Rows; ++r) sum[r][v] = first;
  }
  const uint16_t* b = t.panel;
  for (int64_t k = 0; k < t.pairs; ++k, b += 2 * kBf16Panel) {
    __m512bh y[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v)
      y[v] = reinterpret_cast<__m512bh>(_mm512_loadu_si512(b + v * 2 * kLanes));
#pragma GCC unroll 16
    for (int r = 0; r < kBf16Rows; ++r) {
      int32_t pair;
      std::memcpy(&pair, t.a + r * t.a_step + 2 * k, sizeof(pair));
      const auto x = reinterpret_cast<__m512bh>(_mm512_set1_epi32(pair));
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sum[r][v] = _mm512_dpbf16_ps(sum[r][v], x, y[v]);
    }
  }
}

template <Activation kActivation>
void Hidden(const Bf16Tile& t, const Epilogue& e, uint16_t* out, int64_t out_step) {
  Sums sum;
  MultiplyPairs(t, sum);
  static_assert(kVectors == 2);
#pragma GCC unroll 16
  for (int r = 0; r < kBf16Rows; ++r) {
    const __m512 low = ActivateNear<V, kActivation>(sum[r][0], e);
    const __m512 high = ActivateNear<V, kActivation>(sum[r][1], e);
    _mm512_storeu_si512(out + r * out_step,
                        reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low)));
  }
}

void SumsOf(const Bf16Tile& t, const float* residual, float* out, int64_t out_step) {
  Sums sum;
  MultiplyPairs(t, sum);
#pragma GCC unroll 16
  for (int r = 0; r < kBf16Rows; ++r) {
    if (r >= t.rows) return;
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      const int64_t at = r * out_step + v * kLanes;
      const int n = ColumnsOf(t, v);
      const __m512 y =
          residual == nullptr ? sum[r][v] : V::Add(sum[r][v], V::LoadSome(residual + at, n));
      V::StoreSome(out + at, y, n);
    }
  }
}

void Round(const float* x, int64_t n, uint16_t* y) {
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes)
    _mm512_storeu_si512(y + i, reinterpret_cast<__m512i>(
                                   _mm512_cvtne2ps_pbh(V::Load(x + i + kLanes), V::Load(x + i))));
  for (; i < n; i += kLanes) {
    const int left = n - i < kLanes ? static_cast<int>(n - i) : kLanes;
    const auto rounded = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(V::LoadSome(x + i, left)));
    _mm256_mask_storeu_epi16(y + i, V::Mask(left), rounded);
  }
}

template <size_t... kIndex>
constexpr Bf16Kernels TableOf(std::index_sequence<kIndex...>) {
  return {Round, {Hidden<static_cast<Activation>(kIndex)>...}, SumsOf};
}

}  // namespace

const Bf16Kernels* Avx512Bf16Kernels() {
  static constexpr Bf16Kernels table = TableOf(std::make_index_sequence<kActivations>());
  return &table;
}

}  // namespace heddle::simd

#else

const heddle::simd::Bf16Kernels* heddle::simd::Avx512Bf16Kernels() { return nullptr; }

#endif
