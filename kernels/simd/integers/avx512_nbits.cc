// The loops of nbits.h for AVX-512.
#include "kernels/simd/integers/nbits.h"

#ifdef __AVX512F__

#include "kernels/simd/avx512_vector.h"
#include "kernels/simd/integers/nbit_tile.h"

namespace heddle::simd {
namespace {

struct Avx512Bits : Avx512 {
  static __m128i Raw(const uint8_t* p) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  }
  static __m512i Bytes(const uint8_t* p) {
    return _mm512_maskz_cvtepu8_epi32(Mask(kLanes), Raw(p));
  }
  static T Signed(const uint8_t* p) { return Widen(reinterpret_cast<const int8_t*>(p)); }
  // A permutation reads the lower four bits of an index.
  static T Look(__m512i index, T table) {
    return _mm512_maskz_permutexvar_ps(Mask(kLanes), index, table);
  }
  template <int kShift>
  static __m512i Shifted(__m512i bytes) {
    return kShift == 0 ? bytes : _mm512_maskz_srli_epi32(Mask(kLanes), bytes, kShift);
  }
  template <int kShift>
  static T Nibble(__m512i bytes) {
    return Look(Shifted<kShift>(bytes),
                _mm512_setr_ps(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7));
  }
  template <int kShift>
  static T Crumb(__m512i bytes) {
    return Look(Shifted<kShift>(bytes),
                _mm512_setr_ps(-2, -1, 0, 1, -2, -1, 0, 1, -2, -1, 0, 1, -2, -1, 0, 1));
  }
};

}  // namespace

const NbitKernels* Avx512NbitKernels() {
  static constexpr NbitKernels table = NbitLoops<Avx512Bits>::kTable;
  return &table;
}

}  // namespace heddle::simd

#else

const heddle::simd::NbitKernels* heddle::simd::Avx512NbitKernels() { return nullptr; }

#endif
