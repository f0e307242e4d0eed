// Single elements or rows of a tensor, picked or changed by an index tensor.
#pragma once

#include <functional>
#include <string>

#include "core/interrupts.h"
#include "kernels/base/index_args.h"
#include "kernels/elementwise/arithmetic.h"
#include "kernels/operands/operands.h"

namespace heddle {

// Checks the shapes of GatherElements and ScatterElements: `data` and `indices` have one rank, and
// `indices` is no larger along every axis but `axis`.
Status CheckElementIndices(const Shape& data, const Shape& indices, int axis);

// Calls fn(offset in data, offset in indices) for every index, in order. An index that is out of
// range is an error.
template <typename Fn>
Status ForEachElementIndex(const Shape& data, const Tensor& indices, int axis, Fn&& fn) {
  const auto strides = RowMajorStrides(data);
  auto others = strides;
  if (data.rank() > 0) others[axis] = 0;
  const int64_t n = data.rank() > 0 ? data[axis] : 1, step = data.rank() > 0 ? strides[axis] : 1;
  Walk<1> walk(indices.shape(), {others});
  for (const auto part : Stretches(indices.numel()))
    for (int64_t i = part.begin; i < part.end; ++i, walk.Next()) {
      const int64_t given = IntAt(indices, i), at = given < 0 ? given + n : given;
      if (at < 0 || at >= n)
        return OutOfRange("indices holds ", given, " at position ", i, ", expected -", n, " to ",
                          n - 1);
      fn(walk.at(0) + at * step, i);
    }
  return Status::Ok();
}

// The geometry of GatherND and ScatterND: tuples of k indices name rows of `data`, behind `batch`
// leading dimensions that both tensors share.
struct TupleIndex {
  int batch = 0, k = 0;
  int64_t batches = 1, tuples = 0, row = 1;  // tuples of a batch; elements of a row
  int64_t batch_size = 1;                    // elements of data in a batch
};
Result<TupleIndex> TuplesOf(const Shape& data, const Shape& indices, int64_t batch_dims);

// Calls fn(offset of the row in data, number of the tuple) in order.
template <typename Fn>
Status ForEachTuple(const TupleIndex& t, const Shape& data, const Tensor& indices, Fn&& fn) {
  const auto strides = RowMajorStrides(data);
  for (const int64_t i : Watched(t.batches * t.tuples)) {
    int64_t at = i / t.tuples * t.batch_size;
    for (int j = 0; j < t.k; ++j) {
      const int64_t n = data[t.batch + j];
      const int64_t given = IntAt(indices, i * t.k + j), v = given < 0 ? given + n : given;
      if (v < 0 || v >= n)
        return OutOfRange("indices holds ", given, " for axis ", t.batch + j, ", expected -", n,
                          " to ", n - 1);
      at += v * strides[t.batch + j];
    }
    fn(at, i);
  }
  return Status::Ok();
}

// Calls fn with a function (T& old, T update) of the `reduction` that the operator names.
template <typename T, typename Fn>
Status VisitScatterReduction(const std::string& reduction, Fn&& fn) {
  using C = ComputeType<T>;
  const auto wide = [](auto f) {
    return [f](T& old, T update) {
      old = static_cast<T>(f(static_cast<C>(old), static_cast<C>(update)));
    };
  };
  if (reduction == "none") return fn([](T& old, T update) { old = update; });
  if constexpr (std::is_same_v<T, bool>) {
    if (reduction == "add" || reduction == "max") return fn([](T& a, T b) { a = a || b; });
    if (reduction == "mul" || reduction == "min") return fn([](T& a, T b) { a = a && b; });
  } else {
    if (reduction == "add") return fn(wide([](C a, C b) { return AddFn::Apply(a, b); }));
    if (reduction == "mul") return fn(wide([](C a, C b) { return MulFn::Apply(a, b); }));
    if constexpr (!kIsComplex<T>) {  // where one is NaN, the update stays
      if (reduction == "max") return fn(wide([](C a, C b) { return a > b ? a : b; }));
      if (reduction == "min") return fn(wide([](C a, C b) { return a < b ? a : b; }));
    }
  }
  return InvalidArgument("reduction is '", reduction, "', expected none, add, mul, max or min");
}

}  // namespace heddle
