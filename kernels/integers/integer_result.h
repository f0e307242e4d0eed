// What becomes of exact sums of products of 8-bit integers: stored as they are, or scaled by a
// factor and an offset of their column and rounded.
//
// Plain values and loops. Threads: any.
#pragma once

#include <cstdint>
#include <limits>

#include "heddle/dtype.h"

namespace heddle {

// dtype kI32: the sums. Else clip(factor * sum + offset, least, most) as float, for kU8 and kI8
// rounded to the nearest integer, ties to even, and limited to the type's range.
struct IntegerResult {
  DType dtype = DType::kI32;
  bool offset = false;
  float least = -std::numeric_limits<float>::infinity();
  float most = std::numeric_limits<float>::infinity();

  bool scaled() const { return dtype != DType::kI32; }
  bool clips() const {
    return least > -std::numeric_limits<float>::infinity() ||
           most < std::numeric_limits<float>::infinity();
  }
};

// Where a block of results comes from and goes to. Steps are between rows, in elements.
struct IntegerBlock {
  int64_t rows, columns;
  const int32_t* sums;
  int64_t sums_step;
  const float *factor, *offset;  // per column; factor is null for kI32, offset if there is none
  void* out;                     // of the result's dtype
  int64_t out_step;
  // What is still to be taken from the sums: the row's number times the column's. Both may be null.
  const int32_t *row_sums = nullptr, *shift = nullptr;
};
void StoreResults(const IntegerResult& result, const IntegerBlock& block);

}  // namespace heddle
