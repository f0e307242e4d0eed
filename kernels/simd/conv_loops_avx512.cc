// The inner loops of convolutions for AVX-512. This source alone is built for such processors.
#include "kernels/simd/conv_loops.h"

#ifdef __AVX512F__

#include <immintrin.h>

#include "kernels/simd/conv_loops_table.h"

namespace heddle::convloops {
namespace {

struct Avx512 {
  using T = __m512;
  static constexpr int kLanes = 16;
  static constexpr int kRows = 14;  // 28 of the 32 registers are sums

  // Compilers take a function that does nothing else for one without effects, and drop its calls.
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
  static T Fma(T a, T b, T c) { return _mm512_fmadd_ps(a, b, c); }
  static T Fms(T a, T b, T c) { return _mm512_fmsub_ps(a, b, c); }
  // Where one is NaN, b. (With a mask of ones: without one, some compilers see an undefined value.)
  static T Max(T a, T b) { return _mm512_mask_max_ps(a, Mask(kLanes), a, b); }
  static T Min(T a, T b) { return _mm512_mask_min_ps(a, Mask(kLanes), a, b); }
};

}  // namespace

const ConvLoops* LoopsForAvx512() {
  static constexpr ConvLoops loops = TableOf<Avx512>();
  return &loops;
}

}  // namespace heddle::convloops

#else

const heddle::convloops::ConvLoops* heddle::convloops::LoopsForAvx512() { return nullptr; }

#endif
