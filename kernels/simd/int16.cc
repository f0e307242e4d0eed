// Products of 16-bit integers: pairs of products are added by one instruction (pmaddwd).
#include "kernels/simd/int16.h"

#include <cstring>

#ifdef __AVX2__
#include <immintrin.h>
#endif

namespace heddle::simd {

void PortableWordSums(const int16_t* a, int64_t a_step, int64_t pairs, const int16_t* panel,
                      int rows, int32_t* out, int64_t out_step) {
  for (int r = 0; r < rows; ++r) {
    uint32_t sums[kWordPanel] = {};  // unsigned: they may wrap
    const int16_t* const x = a + r * a_step;
    for (int64_t k = 0; k < pairs; ++k) {
      const int16_t* const y = panel + 2 * kWordPanel * k;
      for (int c = 0; c < kWordPanel; ++c)
        sums[c] += static_cast<uint32_t>(int32_t{x[2 * k]} * int32_t{y[2 * c]}) +
                   static_cast<uint32_t>(int32_t{x[2 * k + 1]} * int32_t{y[2 * c + 1]});
    }
    std::memcpy(out + r * out_step, sums, sizeof(sums));
  }
}

#ifdef __AVX2__

namespace {

constexpr int kVectorColumns = 8, kVectors = kWordPanel / kVectorColumns;

template <int kRows>
void Avx2WordTile(const int16_t* a, int64_t a_step, int64_t pairs, const int16_t* panel,
                  int32_t* out, int64_t out_step) {
  __m256i sums[kRows][kVectors];
  for (auto& row : sums)
    for (__m256i& s : row) s = _mm256_setzero_si256();
  for (int64_t k = 0; k < pairs; ++k) {
    __m256i y[kVectors];
    for (int v = 0; v < kVectors; ++v)
      y[v] = _mm256_loadu_si256(
          reinterpret_cast<const __m256i*>(panel + 2 * (kWordPanel * k + v * kVectorColumns)));
    for (int r = 0; r < kRows; ++r) {
      int32_t pair;
      std::memcpy(&pair, a + r * a_step + 2 * k, sizeof(pair));
      const __m256i x = _mm256_set1_epi32(pair);
      for (int v = 0; v < kVectors; ++v)
        sums[r][v] = _mm256_add_epi32(sums[r][v], _mm256_madd_epi16(x, y[v]));
    }
  }
  for (int r = 0; r < kRows; ++r)
    for (int v = 0; v < kVectors; ++v)
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + r * out_step + v * kVectorColumns),
                          sums[r][v]);
}

void Avx2WordSums(const int16_t* a, int64_t a_step, int64_t pairs, const int16_t* panel, int rows,
                  int32_t* out, int64_t out_step) {
  static_assert(kWordRows == 4);
  switch (rows) {
    case 4:
      return Avx2WordTile<4>(a, a_step, pairs, panel, out, out_step);
    case 3:
      return Avx2WordTile<3>(a, a_step, pairs, panel, out, out_step);
    case 2:
      return Avx2WordTile<2>(a, a_step, pairs, panel, out, out_step);
    case 1:
      return Avx2WordTile<1>(a, a_step, pairs, panel, out, out_step);
    default:
      return;
  }
}

}  // namespace

WordSumsFn BestWordSums() { return Avx2WordSums; }

#else

WordSumsFn BestWordSums() { return PortableWordSums; }

#endif

}  // namespace heddle::simd
