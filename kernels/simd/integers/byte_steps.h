// Loops between floats and bytes that stand for (byte - zero) * scale. Results have the bits of
// divisions and roundings one after another, though most are computed with the reciprocal.
//
// Ownership: operands belong to the caller. Threads: all functions are re-entrant. Errors: none;
// preconditions are not checked.
#pragma once

#include <cstdint>

namespace heddle::simd {

struct ByteSteps {
  float scale;
  int32_t zero;    // within the bytes' range
  bool is_signed;  // bytes are int8, else uint8
};

// A sum or a product of two quantised operands, limited and rounded: in float, as its parts.
struct BytePair {
  ByteSteps x, y, out;
  float least, most;
  bool sum;
  bool one_x, one_y;  // the operand is one byte for all
};

struct ByteStepKernels {
  // to[i] = x[i] / scale, to the nearest integer, ties to even, plus zero, limited to the range; of
  // NaN 0.
  void (*round)(const float* x, int64_t n, const ByteSteps& steps, uint8_t* to);
  // Precondition: TakesPair.
  void (*combine)(const BytePair& pair, const uint8_t* x, const uint8_t* y, int64_t n, uint8_t* to);
};

// Whether all numbers of the pair are finite, so that no result is NaN.
bool TakesPair(const BytePair& pair);

// The best ones that this processor runs.
const ByteStepKernels& BestByteSteps();
const ByteStepKernels* PortableByteSteps();
const ByteStepKernels* Avx2ByteSteps();    // null where the build has none
const ByteStepKernels* Avx512ByteSteps();  // likewise

}  // namespace heddle::simd
