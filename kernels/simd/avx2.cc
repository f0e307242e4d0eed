// The microkernels for AVX2 and FMA, which are the base instruction set of all kernels.
#include "kernels/simd/microkernels.h"

#ifdef __AVX2__

#include <immintrin.h>

#include "kernels/simd/microkernel_table.h"

namespace heddle::simd {
namespace {

struct Avx2 {
  using Element = float;
  using T = __m256;
  static constexpr int kLanes = 8;
  static constexpr int kRows = 6;  // 12 of the 16 registers are sums

  // Always inlined: a function that only prefetches has no effects that compilers see, and they
  // drop calls of it.
  static inline __attribute__((always_inline)) void Prefetch(const float* p) {
    _mm_prefetch(p, _MM_HINT_T1);
  }
  static T Zero() { return _mm256_setzero_ps(); }
  static T Set(float x) { return _mm256_set1_ps(x); }
  static T Load(const float* p) { return _mm256_loadu_ps(p); }
  static void Store(float* p, T v) { _mm256_storeu_ps(p, v); }
  static T Widen(const int8_t* p) {
    return _mm256_cvtepi32_ps(
        _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
  }
  static __m256i Mask(int n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  static T LoadSome(const float* p, int n) { return _mm256_maskload_ps(p, Mask(n)); }
  static void StoreSome(float* p, T v, int n) { _mm256_maskstore_ps(p, Mask(n), v); }
  static T Add(T a, T b) { return _mm256_add_ps(a, b); }
  static T Sub(T a, T b) { return _mm256_sub_ps(a, b); }
  static T Mul(T a, T b) { return _mm256_mul_ps(a, b); }
  static T Div(T a, T b) { return _mm256_div_ps(a, b); }
  static T Round(T x) { return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  static T PowerOf2(__m256i n) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23));
  }
  // x * 2^n for whole numbers n, in two factors: 2^n alone may leave the range of exponents.
  static T TimesPowerOf2(T x, T n) {
    const __m256i whole = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(whole, 1);
    return Mul(Mul(x, PowerOf2(half)), PowerOf2(_mm256_sub_epi32(whole, half)));
  }
  // y * 2^n for shifted = n + 1.5 * 2^23; the result is a normal number.
  static T AddToExponent(T y, T shifted) {
    return _mm256_castsi256_ps(_mm256_add_epi32(
        _mm256_castps_si256(y), _mm256_slli_epi32(_mm256_castps_si256(shifted), 23)));
  }
  static T Fma(T a, T b, T c) { return _mm256_fmadd_ps(a, b, c); }
  static T Fms(T a, T b, T c) { return _mm256_fmsub_ps(a, b, c); }
  // b if a or b is NaN.
  static T Max(T a, T b) { return _mm256_max_ps(a, b); }
  static T Min(T a, T b) { return _mm256_min_ps(a, b); }
  // x >= least ? yes : no
  static T IfAtLeast(T x, T least, T yes, T no) {
    return _mm256_blendv_ps(no, yes, _mm256_cmp_ps(x, least, _CMP_GE_OQ));
  }
  // The first n elements of x, then those of `rest`.
  static T FirstOf(T x, int n, T rest) {
    return _mm256_blendv_ps(rest, x, _mm256_castsi256_ps(Mask(n)));
  }
};

}  // namespace

const Microkernels* Avx2Microkernels() {
  static constexpr Microkernels table = TableOf<Avx2>(Isa::kAvx2);
  return &table;
}

}  // namespace heddle::simd

#else

const heddle::simd::Microkernels* heddle::simd::Avx2Microkernels() { return nullptr; }

#endif
