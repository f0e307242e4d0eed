// Attention of one head: the scores of a block of queries never leave the cache.
//
// Source: the products and the softmax of a block at a time are those of FlashAttention (Dao et
// al., 2022) with whole rows of scores, so that no sum is rescaled.
#pragma once

#include <cstdint>
#include <limits>
#include <utility>

#include "kernels/simd/attention_head.h"
#include "kernels/simd/gemm_tile.h"
#include "kernels/simd/transpose_tile.h"
#include "kernels/simd/vector_math.h"

namespace heddle::simd {
namespace {

template <typename V>
struct AttentionTiles {
  using T = typename V::T;
  static constexpr int kLanes = V::kLanes;
  static constexpr float kInfinity = __builtin_inff();

  static HEDDLE_SIMD_INLINE int64_t Least(int64_t a, int64_t b) { return a < b ? a : b; }

  // B in groups of kLanes columns: row p of group v is at b + v * group + p * row.
  struct Columns {
    const float* b;
    int64_t group, row;
  };

  // At most six rows at a time.
  template <int kVectors>
  static HEDDLE_SIMD_INLINE void MultiplyRows(int64_t rows, int64_t depth, const float* a,
                                              int64_t a_step, Columns b, float* out,
                                              int64_t out_step) {
    TileOperands<float> o{a, a_step, 1, b.b, b.row, b.group};
    for (; rows >= 6; rows -= 6, o.a += 6 * a_step, out += 6 * out_step)
      ProductTile<V, 6, kVectors>(depth, o, out, out_step);
    if (rows >= 4) {
      ProductTile<V, 4, kVectors>(depth, o, out, out_step);
      rows -= 4, o.a += 4 * a_step, out += 4 * out_step;
    }
    if (rows >= 2) {
      ProductTile<V, 2, kVectors>(depth, o, out, out_step);
      rows -= 2, o.a += 2 * a_step, out += 2 * out_step;
    }
    if (rows == 1) ProductTile<V, 1, kVectors>(depth, o, out, out_step);
  }

  // out = a * b for `groups` groups of columns.
  static HEDDLE_SIMD_INLINE void Multiply(int64_t rows, int64_t groups, int64_t depth,
                                          const float* a, int64_t a_step, Columns b, float* out,
                                          int64_t out_step) {
    constexpr int kVectors = kLanes == 16 ? 4 : 2;
    for (; groups >= kVectors;
         groups -= kVectors, b.b += kVectors * b.group, out += kVectors * kLanes)
      MultiplyRows<kVectors>(rows, depth, a, a_step, b, out, out_step);
    if (groups >= 2) {
      MultiplyRows<2>(rows, depth, a, a_step, b, out, out_step);
      groups -= 2, b.b += 2 * b.group, out += 2 * kLanes;
    }
    if (groups == 1) MultiplyRows<1>(rows, depth, a, a_step, b, out, out_step);
  }

  // K in groups of kLanes keys: [groups, depth, kLanes]; missing keys of the last group are zeros.
  static HEDDLE_SIMD_INLINE void PackKeys(const AttentionHead& h, float* to) {
    for (int64_t k0 = 0; k0 < h.keys; k0 += kLanes, to += h.depth * kLanes) {
      const float* from = h.k + k0 * h.k_step;
      const int64_t keys = Least(kLanes, h.keys - k0);
      int64_t d = 0;
      for (; d + kLanes <= h.depth; d += kLanes)
        TransposeTile<V>(keys, from + d, h.k_step, to + d * kLanes);
      for (int64_t i = d * kLanes; i < h.depth * kLanes; ++i) to[i] = 0.f;
      for (int64_t k = 0; k < keys; ++k)
        for (int64_t i = d; i < h.depth; ++i) to[i * kLanes + k] = from[k * h.k_step + i];
    }
  }

  // V in groups of kLanes columns: [groups, keys, kLanes], filled up with zeros.
  static HEDDLE_SIMD_INLINE void PackValues(const AttentionHead& h, float* to) {
    for (int64_t d = 0; d < h.value_depth; d += kLanes, to += h.keys * kLanes) {
      const int64_t width = Least(kLanes, h.value_depth - d);
      for (int64_t k = 0; k < h.keys; ++k)
        for (int64_t i = 0; i < kLanes; ++i)
          to[k * kLanes + i] = i < width ? h.v[k * h.v_step + d + i] : 0.f;
    }
  }

  // x rotated by kWidth elements.
  template <int kWidth, int... kI>
  static HEDDLE_SIMD_INLINE T Rotated(T x, std::integer_sequence<int, kI...>) {
    return __builtin_shufflevector(x, x, ((kI + kWidth) % kLanes)...);
  }
  // x = fn(x, x rotated by half, a quarter, … of its length): every element becomes the result of
  // all.
  template <int kWidth = kLanes / 2, typename Fn>
  static HEDDLE_SIMD_INLINE T Reduce(T x, const Fn& fn) {
    x = fn(x, Rotated<kWidth>(x, std::make_integer_sequence<int, kLanes>{}));
    if constexpr (kWidth > 1)
      return Reduce<kWidth / 2>(x, fn);
    else
      return x;
  }
  static HEDDLE_SIMD_INLINE T ReduceSum(T x) {
    return Reduce(
        x, [](T a, T b) __attribute__((always_inline)) { return V::Add(a, b); });
  }
  static HEDDLE_SIMD_INLINE T ReduceMax(T x) {
    return Reduce(
        x, [](T a, T b) __attribute__((always_inline)) { return V::Max(b, a); });
  }

  static HEDDLE_SIMD_INLINE T Masked(const AttentionHead& h, T s, T scale, T mask) {
    if (!h.selects) return V::Fma(s, scale, mask);
    return V::IfAtLeast(mask, V::Set(kInfinity), V::Fma(s, scale, V::Zero()), mask);
  }

  // s = s * scale + mask of one row, or the mask in its place; scores beyond the last key become
  // minus infinity. Element k of the returned vector is the largest of the scores k, k + kLanes, ….
  static HEDDLE_SIMD_INLINE T MaskRow(const AttentionHead& h, int64_t query, float* s) {
    const float* mask = h.mask == nullptr ? nullptr : h.mask + query * h.mask_row;
    const bool by_key = mask != nullptr && h.mask_column != 0;
    const T shift = V::Set(mask != nullptr && !by_key ? *mask : 0.f);
    const T scale = V::Set(h.scale), none = V::Set(-kInfinity);
    T most = none;
    int64_t i = 0;
    for (; i + kLanes <= h.keys; i += kLanes) {
      const T x = Masked(h, V::Load(s + i), scale, by_key ? V::Load(mask + i) : shift);
      V::Store(s + i, x);
      most = V::Max(x, most);
    }
    if (i == h.keys) return most;
    const int left = static_cast<int>(h.keys - i);
    const T m = by_key ? V::LoadSome(mask + i, left) : shift;
    const T x = V::FirstOf(Masked(h, V::Load(s + i), scale, m), left, none);
    V::Store(s + i, x);
    return V::Max(x, most);
  }

  // Rows of scores to exp(score - the row's largest); the factors scale their sums to 1. Several
  // rows at once, since each step of one waits for the step before.
  template <int kRows>
  static HEDDLE_SIMD_INLINE void SoftmaxSome(const AttentionHead& h, int64_t begin, float* scores,
                                             int64_t step, float* factors) {
    T most[kRows], sum[kRows];
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      most[r] = MaskRow(h, begin + r, scores + r * step);
      sum[r] = V::Zero();
    }
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) most[r] = ReduceMax(most[r]);
    for (int64_t i = 0; i < h.keys; i += kLanes) {
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
        float* s = scores + r * step + i;
        const T x = ExpBelow0<V>(V::Sub(V::Load(s), most[r]));
        sum[r] = V::Add(sum[r], x);
        V::Store(s, x);
      }
    }
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) sum[r] = ReduceSum(sum[r]);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) factors[r] = 1 / sum[r][0];
  }

  static HEDDLE_SIMD_INLINE void SoftmaxRows(const AttentionHead& h, int64_t begin, int64_t rows,
                                             float* scores, int64_t step, float* factors) {
    int64_t r = 0;
    for (; r + 4 <= rows; r += 4)
      SoftmaxSome<4>(h, begin + r, scores + r * step, step, factors + r);
    for (; r < rows; ++r) SoftmaxSome<1>(h, begin + r, scores + r * step, step, factors + r);
  }

  // One query at a time, on K and V as they are.
  static HEDDLE_SIMD_INLINE void OneByOne(const AttentionHead& h, float* scores) {
    const int64_t whole = h.depth / kLanes * kLanes;
    for (int64_t i = 0; i < h.queries; ++i) {
      const float* q = h.q + i * h.q_step;
      for (int64_t k = 0; k < h.keys; ++k) {
        const float* key = h.k + k * h.k_step;
        T sums = V::Zero();
        for (int64_t d = 0; d < whole; d += kLanes)
          sums = V::Fma(V::Load(q + d), V::Load(key + d), sums);
        float sum = ReduceSum(sums)[0];
        for (int64_t d = whole; d < h.depth; ++d) sum += q[d] * key[d];
        scores[k] = sum;
      }
      float factor;
      SoftmaxRows(h, i, 1, scores, 0, &factor);
      float* out = h.out + i * h.out_step;
      for (int64_t d = 0; d < h.value_depth; ++d) out[d] = 0.f;
      for (int64_t k = 0; k < h.keys; ++k) {
        const float weight = scores[k] * factor, *value = h.v + k * h.v_step;
        for (int64_t d = 0; d < h.value_depth; ++d) out[d] += weight * value[d];
      }
    }
  }

  // Prefetches rows that are read soon: the rows of a head are far apart, so the processor does not
  // prefetch them by itself.
  static HEDDLE_SIMD_INLINE void Prefetch(const float* rows, int64_t count, int64_t step,
                                          int64_t width) {
    constexpr int64_t kLine = 16;
    for (int64_t r = 0; r < count; ++r)
      for (int64_t i = 0; i < width; i += kLine) __builtin_prefetch(rows + r * step + i);
  }

  // See Microkernels::attention.
  static void Run(const AttentionHead& h, float* work) {
    if (h.few) return OneByOne(h, work);
    constexpr int64_t kBlock = kAttentionBlock;
    Prefetch(h.q, Least(kBlock, h.queries), h.q_step, h.depth);
    Prefetch(h.v, Least(kBlock, h.keys), h.v_step, h.value_depth);
    const int64_t scores_step = PaddedToVectors(h.keys);
    const int64_t out_step = PaddedToVectors(h.value_depth);
    float* scores = work;
    float* out = scores + kBlock * scores_step;
    float* keys = out + kBlock * out_step;
    float* values = keys + scores_step * h.depth;
    PackKeys(h, keys);
    Columns v{h.v, kLanes, h.v_step};
    if (h.value_depth % kLanes != 0) {
      PackValues(h, values);
      v = {values, h.keys * kLanes, kLanes};
    }
    for (int64_t begin = 0; begin < h.queries; begin += kBlock) {
      const int64_t rows = Least(kBlock, h.queries - begin);
      Multiply(rows, (h.keys + kLanes - 1) / kLanes, h.depth, h.q + begin * h.q_step, h.q_step,
               {keys, h.depth * kLanes, kLanes}, scores, scores_step);
      Prefetch(h.out + begin * h.out_step, rows, h.out_step, h.value_depth);
      Prefetch(h.q + (begin + rows) * h.q_step, Least(kBlock, h.queries - begin - rows), h.q_step,
               h.depth);
      float factor[kBlock];
      SoftmaxRows(h, begin, rows, scores, scores_step, factor);
      Multiply(rows, (h.value_depth + kLanes - 1) / kLanes, h.keys, scores, scores_step, v, out,
               out_step);
      for (int64_t r = 0; r < rows; ++r) {
        float* to = h.out + (begin + r) * h.out_step;
        for (int64_t d = 0; d < h.value_depth; ++d) to[d] = out[r * out_step + d] * factor[r];
      }
    }
  }
};

}  // namespace
}  // namespace heddle::simd
