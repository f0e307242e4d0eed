// Rows of a table by their indices. An index out of range gives zeros: a card cannot report an
// error in time.
#pragma once

#include "device/cuda/grid/grid.h"
#include "device/cuda/grid/ids.h"

namespace heddle::HEDDLE_GRID {

// Elements as their bits, of which none set is the number 0.
template <typename T>
struct GatherBody {  // element i of [outer, ids, inner]
  const T* table;
  Ids ids;
  T* out;
  int64_t rows, inner, count, padding;
  HEDDLE_BODY void operator()(int64_t i) const {
    const int64_t outer = i / inner / count, id = ids[i / inner % count];
    const bool there = id >= 0 && id < rows && id != padding;
    out[i] = there ? table[(outer * rows + id) * inner + i % inner] : T(0);
  }
};

// `rows` of `inner` elements for each outer index; `out` takes the elements of as many ids.
inline Status GatherRows(Queue& queue, const Tensor& table, const Tensor& ids, Tensor& out,
                         int64_t rows, int64_t inner, int64_t padding) {
  const auto as = [&](auto bits) {
    using T = decltype(bits);
    return Each(
        queue, out.numel(),
        GatherBody<T>{static_cast<const T*>(table.raw()), Ids(ids),
                      static_cast<T*>(out.mutable_raw()), rows, inner, ids.numel(), padding});
  };
  return SizeOf(table.dtype()) == 2 ? as(uint16_t{}) : as(uint32_t{});
}

}  // namespace heddle::HEDDLE_GRID
