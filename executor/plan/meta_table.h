// One Value for every dtype and shape that a plan's slots have. Programs have many slots and few
// shapes.
//
// Ownership: the table owns the values; they keep their place until it goes, also when it is moved.
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
  // The same with these strides, in elements; one of its own.
  Value* Strided(DType dtype, const Shape& shape, std::vector<int64_t> strides);

 private:
  static uint64_t Hash(DType dtype, const Shape& shape);
  void Grow();

  std::deque<Value> values_, strided_;
  std::vector<Value*> buckets_;  // open addressing; a power of two, at most half of them taken
  size_t taken_ = 0;
};

}  // namespace heddle
