#include "kernels/simd/bytes.h"

#include <algorithm>

#ifdef __AVX2__
#include <immintrin.h>
#endif

#include "kernels/simd/isa.h"

namespace heddle::simd {
namespace {

LookUpBytesFn FasterLookUp() {
#ifdef __AVX2__
  if (BestIsa() == Isa::kAvx512 && __builtin_cpu_supports("avx512vbmi")) return VbmiLookUpBytes();
#endif
  return nullptr;
}

}  // namespace

void LookUpBytes(const uint8_t* from, int64_t n, const uint8_t* table, uint8_t* to) {
  static const LookUpBytesFn faster = FasterLookUp();
  if (faster != nullptr) return faster(from, n, table, to);
  int64_t i = 0;
#ifdef __AVX2__
  // Sixteen tables of sixteen: each one's part of the result is 0 where the byte is another's.
  constexpr int64_t kVector = 32;
  constexpr int kParts = 16;
  if (n >= 4 * kVector) {
    __m256i part[kParts];
    for (int k = 0; k < kParts; ++k)
      part[k] = _mm256_broadcastsi128_si256(
          _mm_loadu_si128(reinterpret_cast<const __m128i*>(table + 16 * k)));
    const __m256i beyond = _mm256_set1_epi8(0x70);  // 16 and more come to have the highest bit
    for (; i + kVector <= n; i += kVector) {
      const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i));
      __m256i y = _mm256_setzero_si256();
      for (int k = 0; k < kParts; ++k) {
        const __m256i own = _mm256_xor_si256(x, _mm256_set1_epi8(static_cast<char>(16 * k)));
        y = _mm256_or_si256(y, _mm256_shuffle_epi8(part[k], _mm256_adds_epu8(own, beyond)));
      }
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), y);
    }
  }
#endif
  for (; i < n; ++i) to[i] = table[from[i]];
}

#ifdef __AVX2__
namespace {

// to[c][r] = from[r][c] for 16 rows and columns: pairs, fours, eights and sixteens of rows are
// interleaved.
void TransposeSixteen(const uint8_t* from, int64_t from_step, uint8_t* to, int64_t to_step) {
  __m128i a[16], b[16];
  for (int r = 0; r < 16; ++r)
    a[r] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + r * from_step));
  for (int k = 0; k < 8; ++k) {
    b[2 * k] = _mm_unpacklo_epi8(a[k], a[k + 8]);
    b[2 * k + 1] = _mm_unpackhi_epi8(a[k], a[k + 8]);
  }
  for (int k = 0; k < 8; ++k) {
    a[2 * k] = _mm_unpacklo_epi8(b[k], b[k + 8]);
    a[2 * k + 1] = _mm_unpackhi_epi8(b[k], b[k + 8]);
  }
  for (int k = 0; k < 8; ++k) {
    b[2 * k] = _mm_unpacklo_epi8(a[k], a[k + 8]);
    b[2 * k + 1] = _mm_unpackhi_epi8(a[k], a[k + 8]);
  }
  for (int k = 0; k < 8; ++k) {
    a[2 * k] = _mm_unpacklo_epi8(b[k], b[k + 8]);
    a[2 * k + 1] = _mm_unpackhi_epi8(b[k], b[k + 8]);
  }
  for (int c = 0; c < 16; ++c) _mm_storeu_si128(reinterpret_cast<__m128i*>(to + c * to_step), a[c]);
}

}  // namespace
#endif

void TransposeBytes(const uint8_t* from, int64_t rows, int64_t columns, uint8_t* to) {
  constexpr int64_t kSide = 16;
  int64_t r = 0;
#ifdef __AVX2__
  for (; r + kSide <= rows; r += kSide) {
    int64_t c = 0;
    for (; c + kSide <= columns; c += kSide)
      TransposeSixteen(from + r * columns + c, columns, to + c * rows + r, rows);
    for (; c < columns; ++c)
      for (int64_t i = r; i < r + kSide; ++i) to[c * rows + i] = from[i * columns + c];
  }
#endif
  for (; r < rows; r += kSide)
    for (int64_t c = 0; c < columns; ++c)
      for (int64_t i = r; i < std::min(rows, r + kSide); ++i)
        to[c * rows + i] = from[i * columns + c];
}

}  // namespace heddle::simd
