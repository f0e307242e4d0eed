// The vector of AVX-512, for the sources that are built for such processors.
//
// Some functions take a mask of ones: without it, some compilers warn of an undefined value.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace heddle::simd {
namespace {

struct Avx512 {
  using Element = float;
  using T = __m512;
  static constexpr int kLanes = 16;
  static constexpr int kRows = 14;  // 28 of the 32 registers are sums

  // Always inlined: a function that only prefetches has no effects that compilers see, and they
  // drop calls of it.
  static inline __attribute__((always_inline)) void Prefetch(const float* p) {
    _mm_prefetch(p, _MM_HINT_T1);
  }
  static T Zero() { return _mm512_setzero_ps(); }
  static T Set(float x) { return _mm512_set1_ps(x); }
  static T Load(const float* p) { return _mm512_loadu_ps(p); }
  static void Store(float* p, T v) { _mm512_storeu_ps(p, v); }
  static __mmask16 Mask(int n) { return static_cast<__mmask16>((1u << n) - 1); }
  static T Widen(const int8_t* p) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return _mm512_maskz_cvtepi32_ps(Mask(kLanes), _mm512_maskz_cvtepi8_epi32(Mask(kLanes), bytes));
  }
  static T LoadSome(const float* p, int n) { return _mm512_maskz_loadu_ps(Mask(n), p); }
  static void StoreSome(float* p, T v, int n) { _mm512_mask_storeu_ps(p, Mask(n), v); }
  static T Add(T a, T b) { return _mm512_add_ps(a, b); }
  static T Sub(T a, T b) { return _mm512_sub_ps(a, b); }
  static T Mul(T a, T b) { return _mm512_mul_ps(a, b); }
  static T Div(T a, T b) { return _mm512_div_ps(a, b); }
  static T Round(T x) { return _mm512_mask_roundscale_ps(x, Mask(kLanes), x, 0); }
  static T TimesPowerOf2(T x, T n) { return _mm512_mask_scalef_ps(x, Mask(kLanes), x, n); }
  // y * 2^n for shifted = n + 1.5 * 2^23; the result is a normal number.
  static T AddToExponent(T y, T shifted) {
    const __m512i n = _mm512_maskz_slli_epi32(Mask(kLanes), _mm512_castps_si512(shifted), 23);
    return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(y), n));
  }
  static T Fma(T a, T b, T c) { return _mm512_fmadd_ps(a, b, c); }
  static T Fms(T a, T b, T c) { return _mm512_fmsub_ps(a, b, c); }
  // b if a or b is NaN.
  static T Max(T a, T b) { return _mm512_mask_max_ps(a, Mask(kLanes), a, b); }
  static T Min(T a, T b) { return _mm512_mask_min_ps(a, Mask(kLanes), a, b); }
  // x >= least ? yes : no
  static T IfAtLeast(T x, T least, T yes, T no) {
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(x, least, _CMP_GE_OQ), no, yes);
  }
  // The first n elements of x, then those of `rest`.
  static T FirstOf(T x, int n, T rest) { return _mm512_mask_blend_ps(Mask(n), rest, x); }
};

}  // namespace
}  // namespace heddle::simd
