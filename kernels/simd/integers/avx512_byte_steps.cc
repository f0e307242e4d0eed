// The loops of byte_steps.h for AVX-512.
#include "kernels/simd/integers/byte_steps.h"

#ifdef __AVX512F__

#include "kernels/simd/avx512_vector.h"
#include "kernels/simd/integers/byte_step_tile.h"

namespace heddle::simd {
namespace {

struct Avx512Steps : Avx512 {
  using I = __m512i;
  static __m128i Raw(const uint8_t* p) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  }
  static T Float(I x) { return _mm512_maskz_cvtepi32_ps(Mask(kLanes), x); }
  static T Unsigned(const uint8_t* p) {
    return Float(_mm512_maskz_cvtepu8_epi32(Mask(kLanes), Raw(p)));
  }
  static T Signed(const uint8_t* p) { return Widen(reinterpret_cast<const int8_t*>(p)); }
  static T Limit(T x, T far) { return Max(Min(x, far), Sub(Zero(), far)); }
  static I Whole(T x) { return _mm512_maskz_cvtps_epi32(Mask(kLanes), x); }
  static bool AnyFarther(T x, T than) {
    return _mm512_cmp_ps_mask(_mm512_abs_ps(x), than, _CMP_GT_OQ) != 0;
  }
  static I AddInt(I a, int32_t b) { return _mm512_add_epi32(a, _mm512_set1_epi32(b)); }
  static I ZeroIfNan(I a, T x) {
    return _mm512_maskz_mov_epi32(_mm512_cmp_ps_mask(x, x, _CMP_ORD_Q), a);
  }
  template <bool kSigned>
  static void Store(uint8_t* to, I v) {
    const I positive =
        kSigned ? v : _mm512_maskz_max_epi32(Mask(kLanes), v, _mm512_setzero_si512());
    const __m128i bytes = kSigned ? _mm512_maskz_cvtsepi32_epi8(Mask(kLanes), positive)
                                  : _mm512_maskz_cvtusepi32_epi8(Mask(kLanes), positive);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), bytes);
  }
};

}  // namespace

const ByteStepKernels* Avx512ByteSteps() {
  static constexpr ByteStepKernels table = ByteStepLoops<Avx512Steps>::kTable;
  return &table;
}

}  // namespace heddle::simd

#else

const heddle::simd::ByteStepKernels* heddle::simd::Avx512ByteSteps() { return nullptr; }

#endif
