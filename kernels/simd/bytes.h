// Loops over bytes.
//
// Ownership: operands belong to the caller. Threads: all functions are re-entrant. Errors: none;
// preconditions are not checked.
#pragma once

#include <cstdint>

namespace heddle::simd {

// to[i] = table[from[i]], a table of 256. `to` may be `from`.
void LookUpBytes(const uint8_t* from, int64_t n, const uint8_t* table, uint8_t* to);
using LookUpBytesFn = void (*)(const uint8_t* from, int64_t n, const uint8_t* table, uint8_t* to);
// The instance for AVX512_VBMI. Null where the compiler cannot make it.
LookUpBytesFn VbmiLookUpBytes();

// to[c][r] = from[r][c]: a matrix of bytes, transposed.
void TransposeBytes(const uint8_t* from, int64_t rows, int64_t columns, uint8_t* to);

}  // namespace heddle::simd
