// Tables of bytes for processors that permute the bytes of two registers.
#include "kernels/simd/bytes.h"

#ifdef __AVX512VBMI__

#include <immintrin.h>

namespace heddle::simd {
namespace {

__mmask64 All() { return ~__mmask64{0}; }

void LookUp(const uint8_t* from, int64_t n, const uint8_t* table, uint8_t* to) {
  constexpr int64_t kVector = 64;
  const __m512i a = _mm512_loadu_si512(table), b = _mm512_loadu_si512(table + kVector);
  const __m512i c = _mm512_loadu_si512(table + 2 * kVector);
  const __m512i d = _mm512_loadu_si512(table + 3 * kVector);
  // A permutation reads the lower seven bits of an index.
  const auto look = [&](__m512i x) {
    const __m512i low = _mm512_mask_permutex2var_epi8(a, All(), x, b);
    const __m512i high = _mm512_mask_permutex2var_epi8(c, All(), x, d);
    return _mm512_mask_blend_epi8(_mm512_movepi8_mask(x), low, high);
  };
  int64_t i = 0;
  for (; i + kVector <= n; i += kVector)
    _mm512_storeu_si512(to + i, look(_mm512_loadu_si512(from + i)));
  for (; i < n; ++i) to[i] = table[from[i]];
}

}  // namespace

LookUpBytesFn VbmiLookUpBytes() { return LookUp; }

}  // namespace heddle::simd

#else

heddle::simd::LookUpBytesFn heddle::simd::VbmiLookUpBytes() { return nullptr; }

#endif
