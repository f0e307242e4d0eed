// The loops of byte_steps.h for AVX2, which all kernels are built for, and for any processor.
#include "kernels/simd/integers/byte_steps.h"

#ifdef __AVX2__
#include <immintrin.h>
#endif

#include "kernels/simd/integers/byte_step_tile.h"
#include "kernels/simd/isa.h"

namespace heddle::simd {

#ifdef __AVX2__

namespace {

struct Avx2Steps {
  using T = __m256;
  using I = __m256i;
  static constexpr int kLanes = 8;
  static T Set(float x) { return _mm256_set1_ps(x); }
  static T Load(const float* p) { return _mm256_loadu_ps(p); }
  static __m128i Raw(const uint8_t* p) {
    return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
  }
  static T Unsigned(const uint8_t* p) { return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(Raw(p))); }
  static T Signed(const uint8_t* p) { return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(Raw(p))); }
  static T Add(T a, T b) { return _mm256_add_ps(a, b); }
  static T Sub(T a, T b) { return _mm256_sub_ps(a, b); }
  static T Mul(T a, T b) { return _mm256_mul_ps(a, b); }
  static T Div(T a, T b) { return _mm256_div_ps(a, b); }
  static T Min(T a, T b) { return _mm256_min_ps(a, b); }
  static T Max(T a, T b) { return _mm256_max_ps(a, b); }
  static T Limit(T x, T far) { return Max(Min(x, far), Sub(_mm256_setzero_ps(), far)); }
  static I Whole(T x) { return _mm256_cvtps_epi32(x); }
  static T Float(I x) { return _mm256_cvtepi32_ps(x); }
  static bool AnyFarther(T x, T than) {
    const T size = _mm256_andnot_ps(_mm256_set1_ps(-0.f), x);
    return _mm256_movemask_ps(_mm256_cmp_ps(size, than, _CMP_GT_OQ)) != 0;
  }
  static I AddInt(I a, int32_t b) { return _mm256_add_epi32(a, _mm256_set1_epi32(b)); }
  // 0 after limits to the range, which contains it: packed values saturate.
  static I ZeroIfNan(I a, T x) {
    return _mm256_and_si256(a, _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_ORD_Q)));
  }
  template <bool kSigned>
  static void Store(uint8_t* to, I v) {
    const __m128i words =
        _mm_packs_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    const __m128i bytes = kSigned ? _mm_packs_epi16(words, words) : _mm_packus_epi16(words, words);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to), bytes);
  }
};

}  // namespace

const ByteStepKernels* Avx2ByteSteps() { return &ByteStepLoops<Avx2Steps>::kTable; }

#else

const ByteStepKernels* Avx2ByteSteps() { return nullptr; }

#endif

const ByteStepKernels* PortableByteSteps() {
  static constexpr ByteStepKernels table{PlainRound, PlainCombine};
  return &table;
}

const ByteStepKernels& BestByteSteps() {
  static const ByteStepKernels& best = BestIsa() == Isa::kAvx512 && Avx512ByteSteps() != nullptr
                                           ? *Avx512ByteSteps()
                                       : Avx2ByteSteps() != nullptr ? *Avx2ByteSteps()
                                                                    : *PortableByteSteps();
  return best;
}

bool TakesPair(const BytePair& p) {
  constexpr float kLarge = 1e16f;  // products of two are finite
  const auto is_small = [](float x) { return x > -kLarge && x < kLarge; };
  return is_small(p.x.scale) && is_small(p.y.scale) && p.least <= p.most;
}

}  // namespace heddle::simd
