// Products of bfloat16 with sums in float, for processors that multiply pairs of them.
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
constexpr int kBf16Rows = 14, kBf16Panel = 32;

struct Bf16Tile {
  // Of all kBf16Rows rows; the results of the first `rows` count.
  const uint16_t* a;
  int64_t a_step;         // between rows, in numbers
  int64_t pairs;          // of numbers in a row
  const uint16_t* panel;  // [pair][column][2]
  const float* bias;      // of the columns; may be null
  int rows, columns;      // at most kBf16Rows and kBf16Panel
};

// activation(a * panel + bias) rounded to bfloat16: all kBf16Rows rows of kBf16Panel columns.
// Those beyond tile.columns are activation(0), if the panel holds zeros there.
using Bf16HiddenFn = void (*)(const Bf16Tile& tile, const Epilogue& epilogue, uint16_t* out,
                              int64_t out_step);

struct Bf16Kernels {
  // y = x rounded to nearest, ties to even; NaN stays.
  void (*round)(const float* x, int64_t n, uint16_t* y);
  Bf16HiddenFn hidden[kActivations];
  // out = a * panel + bias + residual, of the rows and columns that count. The residual may be
  // null, or `out`; both have rows `out_step` numbers apart.
  void (*sums)(const Bf16Tile& tile, const float* residual, float* out, int64_t out_step);
};

// Null: the machine does not multiply bfloat16, or the build has no such instructions.
const Bf16Kernels* Bf16KernelsFor(const Machine& machine);
// The instance for AVX512_BF16. Null where the compiler cannot make it.
const Bf16Kernels* Avx512Bf16Kernels();

}  // namespace heddle::simd
