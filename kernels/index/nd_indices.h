// Tuples of indices that name slices of a tensor.
#pragma once

#include <string>

#include "core/interrupts.h"
#include "kernels/base/index_args.h"
#include "kernels/elementwise/arithmetic.h"
#include "kernels/operands/operands.h"

namespace heddle {

// `indices` holds tuples of k numbers that name slices of `row` elements.
struct NdIndices {
  int64_t tuples = 1, k = 0, row = 1;
  Shape leading;  // of indices, without its last dimension
};
Result<NdIndices> NdIndicesOf(const Shape& data, const Shape& indices);

// Calls fn(offset of the slice in elements, number of the tuple); an index out of range is an
// error.
template <typename Fn>
Status ForEachSlice(const NdIndices& nd, const Shape& data, const Tensor& indices, Fn&& fn) {
  if (nd.k == 0 && nd.row == 0) return Status::Ok();  // the tuples need no memory, but many steps
  const auto strides = RowMajorStrides(data);
  for (const int64_t i : Watched(nd.tuples)) {
    int64_t at = 0;
    for (int64_t j = 0; j < nd.k; ++j) {
      const int64_t v = IntAt(indices, i * nd.k + j), n = data[static_cast<int>(j)];
      if (v < 0 || v >= n)
        return OutOfRange("indices holds ", v, " for axis ", j, " of shape ", data.ToString(),
                          ", expected 0 to ", n - 1);
      at += v * strides[static_cast<size_t>(j)];
    }
    fn(at, i);
  }
  return Status::Ok();
}

enum class Update : uint8_t { kSet, kAdd, kSub, kMul, kDiv, kMin, kMax };

// old = old combined with update.
template <typename T>
T Combined(Update how, T old, T update) {
  using C = ComputeType<T>;
  const C a = static_cast<C>(old), b = static_cast<C>(update);
  switch (how) {
    case Update::kSet:
      return update;
    case Update::kAdd:
      if constexpr (std::is_same_v<T, bool>)
        return a || b;
      else
        return static_cast<T>(AddFn::Apply(a, b));
    case Update::kSub:
      if constexpr (std::is_same_v<T, bool>)
        return a != b;
      else
        return static_cast<T>(SubFn::Apply(a, b));
    case Update::kMul:
      if constexpr (std::is_same_v<T, bool>)
        return a && b;
      else
        return static_cast<T>(MulFn::Apply(a, b));
    case Update::kDiv:
      if constexpr (std::is_same_v<T, bool>)
        return a;
      else
        return static_cast<T>(DivFn::Apply(a, b));
    case Update::kMin:
      if constexpr (kIsComplex<T>)
        return old;
      else
        return b < a ? update : old;
    case Update::kMax:
      if constexpr (kIsComplex<T>)
        return old;
      else
        return a < b ? update : old;
  }
  return update;
}

}  // namespace heddle
