// Products of 8-bit integers for AVX512_VNNI. This source alone is built for such processors.
#include "kernels/simd/int8.h"

#ifdef __AVX512VNNI__

#include <cstring>
#include <utility>

#include "kernels/simd/activation.h"
#include "kernels/simd/avx512_vector.h"

namespace heddle::simd {
namespace {

using V = Avx512;
constexpr int kLanes = V::kLanes, kVectors = kInt8Panel / kLanes;
constexpr int kLine = 64;  // bytes of a cache line
// Vectors of 32-bit numbers: sums of type __m512i are moved through memory by GCC.
using Words = VectorOf<int32_t, 64>;
using Sums = Words[kInt8Rows][kVectors];

// The number of columns in vector v.
HEDDLE_SIMD_INLINE int ColumnsOf(const Int8Tile& t, int v) {
  const int left = t.columns - v * kLanes;
  return left < 0 ? 0 : left < kLanes ? left : kLanes;
}

HEDDLE_SIMD_INLINE void MultiplyGroups(const Int8Tile& t, Sums& sum) {
#pragma GCC unroll 16
  for (int r = 0; r < kInt8Rows; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) sum[r][v] = Words{};
  const int8_t* b = t.panel;
  for (int64_t k = 0; k < t.groups; ++k, b += 4 * kInt8Panel) {
    if (k % (kLine / kInt8Ahead) == 0) _mm_prefetch(t.ahead + k * kInt8Ahead, _MM_HINT_T0);
    __m512i y[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) y[v] = _mm512_loadu_si512(b + v * 4 * kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < kInt8Rows; ++r) {
      int32_t group;
      std::memcpy(&group, t.a + r * t.a_step + 4 * k, sizeof(group));
      const __m512i x = _mm512_set1_epi32(group);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v)
        sum[r][v] = reinterpret_cast<Words>(
            _mm512_dpbusd_epi32(reinterpret_cast<__m512i>(sum[r][v]), x, y[v]));
    }
  }
}

// The product and the bias.
HEDDLE_SIMD_INLINE __m512 ResultOf(const Int8Tile& t, const Sums& sum, int r, int v) {
  const int n = ColumnsOf(t, v);
  const __m512 bias = t.bias == nullptr ? V::Zero() : V::LoadSome(t.bias + v * kLanes, n);
  const __m512 whole =
      _mm512_maskz_cvtepi32_ps(V::Mask(kLanes), reinterpret_cast<__m512i>(sum[r][v]));
  const __m512 scaled = V::Mul(whole, V::Load(t.factors + v * kLanes));
  const __m512 rest = V::Fma(V::Set(t.offset[r]), V::Load(t.sums + v * kLanes), bias);
  return V::Fma(scaled, V::Set(t.scale[r]), rest);
}

template <Activation kActivation>
void Hidden(const Int8Tile& t, const Epilogue& e, float* out, int64_t out_step) {
  Sums sum;
  MultiplyGroups(t, sum);
#pragma GCC unroll 16
  for (int r = 0; r < kInt8Rows; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v)
      V::Store(out + r * out_step + v * kLanes,
               ActivateNear<V, kActivation>(ResultOf(t, sum, r, v), e));
}

void SumsOf(const Int8Tile& t, const float* residual, float* out, int64_t out_step) {
  Sums sum;
  MultiplyGroups(t, sum);
#pragma GCC unroll 16
  for (int r = 0; r < kInt8Rows; ++r) {
    if (r >= t.rows) return;
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      const int64_t at = r * out_step + v * kLanes;
      const int n = ColumnsOf(t, v);
      __m512 y = ResultOf(t, sum, r, v);
      if (residual != nullptr) y = V::Add(y, V::LoadSome(residual + at, n));
      V::StoreSome(out + at, y, n);
    }
  }
}

// op over all elements, in every element of the result.
template <typename Op>
HEDDLE_SIMD_INLINE __m512 OfAllLanes(__m512 x, const Op& op) {
  constexpr int kSwapPairs = 0x4e, kSwapOnes = 0xb1;  // of four, within or of 128-bit parts
  const __mmask16 all = V::Mask(kLanes);
  x = op(x, _mm512_maskz_shuffle_f32x4(all, x, x, kSwapPairs));
  x = op(x, _mm512_maskz_shuffle_f32x4(all, x, x, kSwapOnes));
  x = op(x, _mm512_maskz_permute_ps(all, x, kSwapPairs));
  return op(x, _mm512_maskz_permute_ps(all, x, kSwapOnes));
}

void Round(const float* x, int64_t n, uint8_t* y, float* scale, float* offset) {
  __m512 low = V::Zero(), high = V::Zero(), zeros = V::Zero();
  const auto see = [&](__m512 v) __attribute__((always_inline)) {
    low = V::Min(low, v);
    high = V::Max(high, v);
    zeros = V::Fma(v, V::Zero(), zeros);  // NaN if a number is NaN or infinite
  };
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) see(V::Load(x + i));
  if (i < n) see(V::LoadSome(x + i, static_cast<int>(n - i)));
  low = OfAllLanes(low, [](__m512 a, __m512 b) { return V::Min(a, b); });
  high = OfAllLanes(high, [](__m512 a, __m512 b) { return V::Max(a, b); });
  constexpr float kMost = 255, kLeastRange = 1e-30f;
  const __m512 range = V::Max(V::Set(kLeastRange), V::Sub(high, low));
  const __m512 inverse = V::Div(V::Set(kMost), range);
  const __m512 zero = V::Round(V::Mul(V::Sub(V::Zero(), low), inverse));
  const auto rounded = [&](__m512 v) __attribute__((always_inline)) {
    const __m512 q = V::Max(V::Zero(), V::Fma(v, inverse, zero));
    return _mm512_maskz_cvtusepi32_epi8(V::Mask(kLanes),
                                        _mm512_maskz_cvtps_epi32(V::Mask(kLanes), q));
  };
  for (i = 0; i + kLanes <= n; i += kLanes)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(y + i), rounded(V::Load(x + i)));
  if (const int left = static_cast<int>(n - i); left > 0)
    _mm_mask_storeu_epi8(y + i, V::Mask(left), rounded(V::LoadSome(x + i, left)));
  __m512 step = V::Mul(range, V::Set(1 / kMost));
  if (_mm512_cmp_ps_mask(zeros, zeros, _CMP_UNORD_Q) != 0) step = V::Set(__builtin_nanf(""));
  V::StoreSome(scale, step, 1);
  V::StoreSome(offset, V::Sub(V::Zero(), V::Mul(zero, step)), 1);
}

template <size_t... kIndex>
constexpr Int8Kernels TableOf(std::index_sequence<kIndex...>) {
  return {Round, {Hidden<static_cast<Activation>(kIndex)>...}, SumsOf};
}

}  // namespace

const Int8Kernels* Avx512VnniKernels() {
  static constexpr Int8Kernels table = TableOf(std::make_index_sequence<kActivations>());
  return &table;
}

}  // namespace heddle::simd

#else

const heddle::simd::Int8Kernels* heddle::simd::Avx512VnniKernels() { return nullptr; }

#endif
