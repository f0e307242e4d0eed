// The rows that a sparse gradient names, in ascending order, so that the parts of one row lie side
// by side: who adds them up does so in the order in which they came, and results do not depend on
// which thread is first.
#pragma once

#include "device/cuda/grid/grid.h"
#include "device/cuda/grid/ids.h"

namespace heddle::HEDDLE_GRID {

struct SortedRows {
  const int64_t* row = nullptr;   // [count], ascending
  const int32_t* from = nullptr;  // [count]: where the row stood; ascending for equal rows
  int64_t count = 0;

  // The first position of a row that is not less than `wanted`; `count`: there is none.
  HEDDLE_BODY int64_t Find(int64_t wanted) const {
    int64_t begin = 0, end = count;
    while (begin < end) {
      const int64_t middle = (begin + end) / 2;
      if (row[middle] < wanted)
        begin = middle + 1;
      else
        end = middle;
    }
    return begin;
  }
  // It is the first one of its row.
  HEDDLE_BODY bool Begins(int64_t at) const { return at == 0 || row[at - 1] != row[at]; }
  // The sum over the parts of the row at position `at`, of element `k` of rows of `width`.
  HEDDLE_BODY float Sum(const float* parts, int64_t width, int64_t at, int64_t k) const {
    float sum = 0;
    for (int64_t i = at; i < count && row[i] == row[at]; ++i)
      sum += parts[static_cast<int64_t>(from[i]) * width + k];
    return sum;
  }
};

// Sorts by merging: some launches, in each of which every element finds its own place. The result
// lies in `scratch`, which has taken nothing yet. `count` is below 2^31.
Result<SortedRows> SortRows(Queue& queue, const Ids& ids, int64_t count, Scratch& scratch);

}  // namespace heddle::HEDDLE_GRID
