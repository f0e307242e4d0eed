// A tensor seen as lines along one axis: outer × n × inner.
#pragma once

#include <algorithm>

#include "core/shapes.h"

namespace heddle {

struct AxisLines {
  int64_t outer = 1, n = 1, inner = 1;  // element (o, i, k) lies at (o * n + i) * inner + k

  static AxisLines Of(const Shape& x, int axis) {
    if (x.rank() == 0) return {};
    return {x.Product(0, axis), x[axis], x.Product(axis + 1, x.rank())};
  }
  // `axis` may be negative; an error if it is out of range.
  static Result<AxisLines> At(const Shape& x, int64_t axis) {
    HEDDLE_ASSIGN_OR_RETURN(const int a, NormalAxis(axis, x.rank()));
    return Of(x, a);
  }
  int64_t lines() const { return outer * inner; }
  // The first element of a line; its others follow at distances of `inner`.
  int64_t Begin(int64_t line) const { return line / inner * n * inner + line % inner; }

  // fn(line) for all lines; a line costs about `cost` steps per element.
  template <typename Fn>
  void ForEach(const KernelContext& ctx, int64_t cost, Fn&& fn) const {
    const int64_t grain = std::max<int64_t>(1, (int64_t{1} << 15) / std::max<int64_t>(1, n * cost));
    ctx.ParallelFor(lines(), grain, [&](int64_t begin, int64_t end) {
      for (int64_t l = begin; l < end; ++l) fn(l);
    });
  }
};

// The lines as pairs of value and position are reordered by several operators: descending order
// with NaN as the greatest value, equal values in the order of their positions.
template <typename T>
bool IsNan(T v) {
  return v != v;
}
template <typename T>
bool Greater(T a, T b) {
  return (a > b) | (IsNan(a) & !IsNan(b));
}
template <typename T>
bool Less(T a, T b) {
  return (a < b) | (IsNan(b) & !IsNan(a));
}

}  // namespace heddle
