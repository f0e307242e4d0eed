// Rows of a table by their indices. An index out of range gives zeros: a card cannot report an
// error in time.
#pragma once

#include "device/cuda/grid/ids.h"

namespace heddle::HEDDLE_GRID {

struct GatherBody {  // element i of [outer, ids, inner]
  const float* table;
  Ids ids;
  float* out;
  int64_t rows, inner, count, padding;
  HEDDLE_BODY void operator()(int64_t i) const {
    const int64_t outer = i / inner / count, id = ids[i / inner % count];
    const bool there = id >= 0 && id < rows && id != padding;
    out[i] = there ? table[(outer * rows + id) * inner + i % inner] : 0;
  }
};

}  // namespace heddle::HEDDLE_GRID
