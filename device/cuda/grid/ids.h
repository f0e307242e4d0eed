// Indices and labels: integers of either size.
#pragma once

#include "device/cuda/grid/grid_body.h"
#include "heddle/tensor.h"

namespace heddle::HEDDLE_GRID {

struct Ids {
  const int64_t* wide = nullptr;
  const int32_t* narrow = nullptr;
  explicit Ids(const Tensor& t)
      : wide(t.dtype() == DType::kI64 ? t.data<int64_t>() : nullptr),
        narrow(t.dtype() == DType::kI64 ? nullptr : t.data<int32_t>()) {}
  HEDDLE_BODY int64_t operator[](int64_t i) const { return wide != nullptr ? wide[i] : narrow[i]; }
};
inline bool AreIds(DType t) { return t == DType::kI64 || t == DType::kI32; }

}  // namespace heddle::HEDDLE_GRID
