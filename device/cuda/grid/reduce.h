// Reductions: for each kept element, the mapped reduced elements are combined. A thread computes a
// kept element where these are contiguous, else a group does. Reductions of many elements to few
// are split, and a second launch combines the parts: results do not depend on the order in which
// blocks run.
#pragma once

#include <algorithm>

#include "device/cuda/grid/grid.h"
#include "device/cuda/grid/real.h"
#include "device/cuda/grid/strides.h"

namespace heddle::HEDDLE_GRID {

struct SumOp {
  HEDDLE_BODY static float Identity() { return 0; }
  HEDDLE_BODY float operator()(float a, float b) const { return a + b; }
};
// NaN is the largest and the smallest.
struct MaxOp {
  HEDDLE_BODY static float Identity() { return -INFINITY; }
  HEDDLE_BODY float operator()(float a, float b) const { return a > b || a != a ? a : b; }
};
struct MinOp {
  HEDDLE_BODY static float Identity() { return INFINITY; }
  HEDDLE_BODY float operator()(float a, float b) const { return a < b || a != a ? a : b; }
};
struct ProdOp {
  HEDDLE_BODY static float Identity() { return 1; }
  HEDDLE_BODY float operator()(float a, float b) const { return a * b; }
};

// Elements of `K` operands; Map is given where each has one.
template <typename Map, typename Op, int K, typename T>
struct ReduceBody {
  Strides<K> kept, reduced;
  Map map;
  T* out;                  // [pieces, kept]
  int64_t pieces, length;  // of each piece
  float scale;

  HEDDLE_BODY float Partial(int64_t row, int rank, int step) const {
    const int64_t piece = row / kept.numel;
    const auto base = kept.At(static_cast<uint32_t>(row % kept.numel));
    const int64_t begin = piece * length;
    const int64_t end = begin + length < reduced.numel ? begin + length : reduced.numel;
    float value = Op::Identity();
    for (int64_t i = begin + rank; i < end; i += step) {
      auto p = reduced.At(static_cast<uint32_t>(i));
      for (int o = 0; o < K; ++o) p.at[o] += base.at[o];
      value = Op()(value, map(p));
    }
    return value;
  }
  HEDDLE_BODY void operator()(int64_t row) const { Put(Partial(row, 0, 1) * scale, out + row); }
  HEDDLE_BODY void operator()(Group& group, int64_t row) const {
    const float all = group.Reduce(Partial(row, group.rank(), group.size()), Op());
    if (group.rank() == 0) Put(all * scale, out + row);
  }
};

template <typename Op, typename T>
struct CombineBody {
  const float* pieces;
  T* out;
  int64_t count, kept;
  float scale;
  HEDDLE_BODY void operator()(int64_t i) const {
    float value = pieces[i];
    for (int64_t p = 1; p < count; ++p) value = Op()(value, pieces[p * kept + i]);
    Put(value * scale, out + i);
  }
};

// out[kept element] = scale * (map of all reduced ones), rounded once where T is a 16-bit type.
template <typename Op, typename Map, int K, typename T>
Status ReduceInto(Queue& queue, const Strides<K>& kept, const Strides<K>& reduced, const Map& map,
                  T* out, float scale = 1) {
  constexpr int64_t kFew = 16, kEnough = 1 << 14, kMostPieces = 64, kLeast = 256;
  if (kept.numel == 0) return Status::Ok();
  const bool beside = kept.rank > 0 && kept.step[0][kept.rank - 1] == 1;
  const bool threads = reduced.numel <= kFew || beside;
  const int64_t workers = threads ? kept.numel : kept.numel * Group::kMost;
  int64_t pieces = std::min(kEnough / std::max<int64_t>(1, workers), reduced.numel / kLeast);
  pieces = std::clamp<int64_t>(pieces, 1, kMostPieces);
  const int64_t length = (reduced.numel + pieces - 1) / pieces;
  const auto launch = [&](const auto& body) {
    return threads ? Each(queue, pieces * kept.numel, body)
                   : Groups(queue, pieces * kept.numel, length, body);
  };
  if (pieces == 1)
    return launch(ReduceBody<Map, Op, K, T>{kept, reduced, map, out, pieces, length, scale});
  Scratch scratch(queue);
  HEDDLE_RETURN_IF_ERROR(scratch.Take(pieces * kept.numel));
  HEDDLE_RETURN_IF_ERROR(
      launch(ReduceBody<Map, Op, K, float>{kept, reduced, map, scratch.data(), pieces, length, 1}));
  return Each(queue, kept.numel,
              CombineBody<Op, T>{scratch.data(), out, pieces, kept.numel, scale});
}

// `shape` cut into what `keeps` says is kept and what is reduced.
template <int K, typename Keeps>
void Cut(const Shape& shape, const Steps (&steps)[K], Keeps keeps, Strides<K>* kept,
         Strides<K>* reduced) {
  for (int d = 0; d < shape.rank(); ++d) {
    int64_t at[K];
    for (int o = 0; o < K; ++o) at[o] = steps[o].at[d];
    (keeps(d) ? kept : reduced)->Add(shape[d], at);
  }
}

}  // namespace heddle::HEDDLE_GRID
