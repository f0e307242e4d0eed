// Products with a constant matrix of integers of 2, 4 or 8 bits that stand for
// (value - zero) * scale, with a scale and a zero point for each column of a block of rows.
//
// The matrix lies in panels of columns, two vectors wide. A row of a panel is a field of `bits`
// bits for each column: 8 bits are bytes, signed; of 4 bits, byte i holds columns i and lanes + i,
// the first in the lower half; of 2 bits, byte i of a pair of rows holds columns i and lanes + i of
// the first row, then those of the second. Fields of 2 and 4 bits hold the value plus 2 and 8.
//
// Ownership: tables are constants of the program; operands belong to the caller. Threads: all
// functions are re-entrant. Errors: none; preconditions are not checked.
#pragma once

#include <cstdint>

namespace heddle::simd {

enum class Isa : uint8_t;

// Rows [first, first + rows) of a block of a panel. `first` is even where `bits` is 2.
struct NbitRows {
  const uint8_t* values;      // of the block's first row
  const float *scale, *zero;  // of the columns
  int64_t first, rows;
};

// Rows of the other operand, of which the columns that belong to the block are given.
struct NbitFactor {
  const float* values;
  int64_t step;         // between rows
  const float* totals;  // their sums, `totals_step` apart; null: all zero points are 0
  int64_t totals_step;
  int count;  // at most kNbitProducts
};
constexpr int kNbitProducts = 4;

struct NbitKernels {
  int lanes;
  // to[r][c] = (value - zero) * scale, for the columns of one or two vectors; `to` has no gaps.
  void (*widen)(int bits, const NbitRows& block, int vectors, float* to);
  // sums[i][c] += scale[c] * the sum over rows r of x[i][r] * (value[r][c] - zero[c]).
  void (*multiply)(int bits, const NbitRows& block, const NbitFactor& x, float* sums);
};

// Bytes of `rows` rows of a panel.
constexpr int64_t NbitBytes(int bits, int64_t rows, int lanes) {
  return bits == 2 ? (rows + 1) / 2 * lanes : rows * lanes * bits / 4;
}

// For the vectors of an instruction set, as wide as those of its microkernels.
const NbitKernels* NbitKernelsOf(Isa isa);
const NbitKernels* Avx2NbitKernels();    // null where the build has none
const NbitKernels* Avx512NbitKernels();  // likewise
const NbitKernels* PortableNbitKernels();

}  // namespace heddle::simd
