// Products of 16-bit integers with sums in 32 bits: the operands are 8-bit integers minus their
// zero points, so that products of pairs are exact on every processor.
//
// Ownership: operands belong to the caller. Threads: all functions are re-entrant. Errors: none;
// preconditions are not checked.
#pragma once

#include <cstdint>

namespace heddle::simd {

// Rows of a tile, and columns of a panel.
constexpr int kWordRows = 4, kWordPanel = 16;

// out[r][c] = the sum over k of a[r][k] * panel[k / 2][c][k % 2], for `rows` rows, at most
// kWordRows, and all kWordPanel columns. `pairs` is half the number of terms. Sums wrap.
using WordSumsFn = void (*)(const int16_t* a, int64_t a_step, int64_t pairs, const int16_t* panel,
                            int rows, int32_t* out, int64_t out_step);

// The instance for any processor.
void PortableWordSums(const int16_t* a, int64_t a_step, int64_t pairs, const int16_t* panel,
                      int rows, int32_t* out, int64_t out_step);
// The best one that kernels are built for.
WordSumsFn BestWordSums();

}  // namespace heddle::simd
