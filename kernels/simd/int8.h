// Products of 8-bit integers with sums in 32 bits, for processors that multiply groups of four.
//
// A row of floats is rounded to unsigned integers with a factor and an offset of its own:
// x = scale * q + offset. The constant matrix is signed, with a factor for each column.
//
// Ownership: tables are constants of the program; operands belong to the caller. Threads: all
// functions are re-entrant. Errors: none; preconditions are not checked.
#pragma once

#include <cstdint>

#include "kernels/simd/activations.h"

namespace heddle {
struct Machine;
}

namespace heddle::simd {

// A tile of results: so many rows by the columns of a panel, which stay in registers.
constexpr int kInt8Rows = 14, kInt8Panel = 32;
constexpr int kInt8Ahead = 32;

struct Int8Tile {
  // Of all kInt8Rows rows; the results of the first `rows` count.
  const uint8_t* a;
  int64_t a_step;               // between rows
  int64_t groups;               // of four numbers of a row
  const float *scale, *offset;  // of the rows
  const int8_t* panel;          // [group][column][4]
  // For each column of the panel: its factor, the factor times the sum of its integers, and a bias.
  // `bias` may be null.
  const float *factors, *sums, *bias;
  int rows, columns;  // at most kInt8Rows and kInt8Panel
  // Memory that the next tile reads: kInt8Ahead bytes of it are prefetched for each group.
  const char* ahead;
};

// activation(a * panel + bias): all kInt8Rows rows of kInt8Panel columns. Those beyond tile.columns
// are activation(0), if the panel, its factors and sums are zeros there.
using Int8HiddenFn = void (*)(const Int8Tile& tile, const Epilogue& epilogue, float* out,
                              int64_t out_step);

struct Int8Kernels {
  // Rounds one row of n numbers with the smallest factor whose range contains them and 0. If one is
  // infinite or NaN, the factor is NaN.
  void (*round)(const float* x, int64_t n, uint8_t* y, float* scale, float* offset);
  Int8HiddenFn hidden[kActivations];
  // out = a * panel + bias + residual, of the rows and columns that count. The residual may be
  // null, or `out`; both have rows `out_step` numbers apart.
  void (*sums)(const Int8Tile& tile, const float* residual, float* out, int64_t out_step);
};

// Null: the machine has no such instructions, or the build has none.
const Int8Kernels* Int8KernelsFor(const Machine& machine);
// The instance for AVX512_VNNI. Null where the compiler cannot make it.
const Int8Kernels* Avx512VnniKernels();

}  // namespace heddle::simd
