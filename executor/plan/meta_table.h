// MetaTable: one Value for each combination of dtype and shape in a plan. Programs have many slots
// and few shapes.
//
// Ownership: the table owns the values; their addresses stay the same while it lives, also when it
// is moved.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "heddle/value.h"

namespace heddle {

class MetaTable {
 public:
  // The tensor without contents of this dtype and shape. Must not be changed.
  Value* Of(DType dtype, const Shape& shape);
  // A separate tensor with these strides, in elements.
  Value* Strided(DType dtype, const Shape& shape, std::vector<int64_t> strides);

 private:
  static uint64_t Hash(DType dtype, const Shape& shape);
  void Grow();

  std::deque<Value> values_, strided_;
  // Open addressing; the size is a power of two, at most half is used.
  std::vector<Value*> buckets_;
  size_t taken_ = 0;
};

}  // namespace heddle
