#include "kernels/attention/attention.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "kernels/simd/fast_math.h"

namespace heddle {
namespace {

#if defined(__x86_64__)
#define HEDDLE_WIDE [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")]]
#else
#define HEDDLE_WIDE
#endif

bool WideVectors() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#else
  return false;
#endif
}

constexpr int64_t kMostLanes = 16;
constexpr int64_t kBlock = 48;  // queries whose scores are held at once

template <int kLanes>
struct Lanes {
  typedef float type __attribute__((vector_size(sizeof(float) * kLanes)));
  typedef int index __attribute__((vector_size(sizeof(int) * kLanes)));
};

// Orders of elements, as constants: lanes from 0 twice over, so that those from `w` on are a vector
// turned by w; and two vectors' elements, from `from` on, in alternation.
template <int kLanes>
constexpr auto Turns = [] {
  std::array<int, 2 * kLanes> turns{};
  for (int i = 0; i < 2 * kLanes; ++i) turns[static_cast<size_t>(i)] = i % kLanes;
  return turns;
}();
template <int kLanes, int kFrom>
constexpr auto Interleave = [] {
  std::array<int, kLanes> order{};
  for (int i = 0; i < kLanes; ++i) order[static_cast<size_t>(i)] = kFrom + i / 2 + i % 2 * kLanes;
  return order;
}();

int64_t Padded(int64_t n) { return (n + kMostLanes - 1) / kMostLanes * kMostLanes; }

// B in columns of kLanes: row p of column group v is at b + v * group + p * row.
struct Columns {
  const float* b;
  int64_t group, row;
};

// kRows x (kCols * kLanes) products of `depth` steps.
template <int kLanes, int kRows, int kCols>
[[gnu::always_inline]] inline void Tile(int64_t depth, const float* a, int64_t a_step, Columns b,
                                        float* out, int64_t out_step) {
  using V = typename Lanes<kLanes>::type;
  V acc[kRows][kCols];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 8
    for (int c = 0; c < kCols; ++c) acc[r][c] = V{};
  for (int64_t p = 0; p < depth; ++p) {
    V column[kCols];
#pragma GCC unroll 8
    for (int c = 0; c < kCols; ++c)
      std::memcpy(&column[c], b.b + c * b.group + p * b.row, sizeof(V));
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const float x = a[r * a_step + p];
#pragma GCC unroll 8
      for (int c = 0; c < kCols; ++c) acc[r][c] += x * column[c];
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 8
    for (int c = 0; c < kCols; ++c)
      std::memcpy(out + r * out_step + c * kLanes, &acc[r][c], sizeof(V));
}

template <int kLanes, int kCols>
[[gnu::always_inline]] inline void TileRows(int64_t rows, int64_t depth, const float* a,
                                            int64_t a_step, Columns b, float* out,
                                            int64_t out_step) {
  for (; rows >= 6; rows -= 6, a += 6 * a_step, out += 6 * out_step)
    Tile<kLanes, 6, kCols>(depth, a, a_step, b, out, out_step);
  if (rows >= 4) {
    Tile<kLanes, 4, kCols>(depth, a, a_step, b, out, out_step);
    rows -= 4, a += 4 * a_step, out += 4 * out_step;
  }
  if (rows >= 2) {
    Tile<kLanes, 2, kCols>(depth, a, a_step, b, out, out_step);
    rows -= 2, a += 2 * a_step, out += 2 * out_step;
  }
  if (rows == 1) Tile<kLanes, 1, kCols>(depth, a, a_step, b, out, out_step);
}

// out = a * b for `groups` groups of columns.
template <int kLanes>
[[gnu::always_inline]] inline void Multiply(int64_t rows, int64_t groups, int64_t depth,
                                            const float* a, int64_t a_step, Columns b, float* out,
                                            int64_t out_step) {
  constexpr int kCols = kLanes == 16 ? 4 : 2;
  for (; groups >= kCols; groups -= kCols, b.b += kCols * b.group, out += kCols * kLanes)
    TileRows<kLanes, kCols>(rows, depth, a, a_step, b, out, out_step);
  if (groups >= 2) {
    TileRows<kLanes, 2>(rows, depth, a, a_step, b, out, out_step);
    groups -= 2, b.b += 2 * b.group, out += 2 * kLanes;
  }
  if (groups == 1) TileRows<kLanes, 1>(rows, depth, a, a_step, b, out, out_step);
}

// `count` rows of kLanes elements (the rest zeros), transposed: rounds that interleave the halves.
template <int kLanes>
[[gnu::always_inline]] inline void TransposeTile(int64_t count, const float* from,
                                                 int64_t from_step, float* to) {
  using V = typename Lanes<kLanes>::type;
  typename Lanes<kLanes>::index low, high;
  std::memcpy(&low, Interleave<kLanes, 0>.data(), sizeof(low));
  std::memcpy(&high, Interleave<kLanes, kLanes / 2>.data(), sizeof(high));
  V rows[kLanes], next[kLanes];
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) {
    rows[i] = V{};
    if (i < count) std::memcpy(&rows[i], from + i * from_step, sizeof(V));
  }
#pragma GCC unroll 4
  for (int round = 1; round < kLanes; round *= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < kLanes / 2; ++i) {
      next[2 * i] = __builtin_shuffle(rows[i], rows[i + kLanes / 2], low);
      next[2 * i + 1] = __builtin_shuffle(rows[i], rows[i + kLanes / 2], high);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) rows[i] = next[i];
  }
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) std::memcpy(to + i * kLanes, &rows[i], sizeof(V));
}

// K in groups of kLanes keys: [groups, depth, kLanes]; keys there are none of are zeros.
template <int kLanes>
[[gnu::always_inline]] inline void PackKeys(const AttentionHead& h, float* to) {
  for (int64_t k0 = 0; k0 < h.keys; k0 += kLanes, to += h.depth * kLanes) {
    const float* from = h.k + k0 * h.k_step;
    const int64_t keys = std::min<int64_t>(kLanes, h.keys - k0);
    int64_t d = 0;
    for (; d + kLanes <= h.depth; d += kLanes)
      TransposeTile<kLanes>(keys, from + d, h.k_step, to + d * kLanes);
    std::fill(to + d * kLanes, to + h.depth * kLanes, 0.f);
    for (int64_t k = 0; k < keys; ++k)
      for (int64_t i = d; i < h.depth; ++i) to[i * kLanes + k] = from[k * h.k_step + i];
  }
}

// V in groups of kLanes columns: [groups, keys, kLanes], filled up with zeros.
template <int kLanes>
[[gnu::always_inline]] inline void PackValues(const AttentionHead& h, float* to) {
  for (int64_t d = 0; d < h.value_depth; d += kLanes, to += h.keys * kLanes) {
    const int64_t width = std::min<int64_t>(kLanes, h.value_depth - d);
    for (int64_t k = 0; k < h.keys; ++k)
      for (int64_t i = 0; i < kLanes; ++i)
        to[k * kLanes + i] = i < width ? h.v[k * h.v_step + d + i] : 0.f;
  }
}

// x = fn(x, x turned by half, a quarter, … of its length): every element becomes the whole's
// result.
template <int kLanes, typename Fn>
[[gnu::always_inline]] inline void Reduce(typename Lanes<kLanes>::type& x, Fn fn) {
  using V = typename Lanes<kLanes>::type;
#pragma GCC unroll 4
  for (int width = kLanes / 2; width > 0; width /= 2) {
    typename Lanes<kLanes>::index turn;
    std::memcpy(&turn, Turns<kLanes>.data() + width, sizeof(turn));
    const V other = __builtin_shuffle(x, turn);
    fn(x, other);
  }
}

// x = e^x for x <= 0: 2^f for the rest f of a multiple of log2(e), a least-maximum fit of degree 5;
// 0 below the least normal number, NaN for NaN.
template <int kLanes>
[[gnu::always_inline]] inline void ExpBelow0(typename Lanes<kLanes>::type& x) {
  using V = typename Lanes<kLanes>::type;
  using I = typename Lanes<kLanes>::index;
  constexpr float kTurn = 1.44269504088896341f, kLeast = -87.3f;
  const V c = x < kLeast ? V{} + kLeast : x;
  const V turns = c * kTurn + fast::kRound;
  const V f = c * kTurn - (turns - fast::kRound);
  V p = f * 0.00132694072f + 0.00967129413f;
  p = p * f + 0.0555071123f;
  p = p * f + 0.240222469f;
  p = p * f + 0.693147004f;
  p = p * f + 1.f;
  const I bits = reinterpret_cast<I>(p) + (reinterpret_cast<I>(turns) << 23);  // p * 2^turns
  x = x >= kLeast ? reinterpret_cast<V>(bits) : c - c;
}

// s = s * scale + mask of one row; scores there are no keys for become minus infinity. `most`: the
// largest of every lane.
template <int kLanes>
[[gnu::always_inline]] inline void MaskRow(const AttentionHead& h, int64_t query, float* s,
                                           typename Lanes<kLanes>::type& most) {
  using V = typename Lanes<kLanes>::type;
  const float* mask = h.mask == nullptr ? nullptr : h.mask + query * h.mask_row;
  const bool by_key = mask != nullptr && h.mask_column != 0;
  const float shift = mask != nullptr && !by_key ? *mask : 0.f;
  most = V{} - std::numeric_limits<float>::infinity();
  int64_t i = 0;
  for (; i + kLanes <= h.keys; i += kLanes) {
    V x, m = V{} + shift;
    std::memcpy(&x, s + i, sizeof(V));
    if (by_key) std::memcpy(&m, mask + i, sizeof(V));
    x = x * h.scale + m;
    std::memcpy(s + i, &x, sizeof(V));
    most = most < x ? x : most;
  }
  if (i == h.keys) return;
  float rest[kLanes];
  V x;
  for (int64_t l = 0; l < kLanes; ++l) rest[l] = i + l < h.keys && by_key ? mask[i + l] : shift;
  for (int64_t l = 0; l < kLanes; ++l)
    rest[l] =
        i + l < h.keys ? s[i + l] * h.scale + rest[l] : -std::numeric_limits<float>::infinity();
  std::memcpy(&x, rest, sizeof(V));
  std::memcpy(s + i, &x, sizeof(V));
  most = most < x ? x : most;
}

// Rows of scores to exp(score - the row's largest); the factors scale their sums to 1. Several rows
// at once, since each step of one waits for the step before.
template <int kLanes, int kRows>
[[gnu::always_inline]] inline void SoftmaxSome(const AttentionHead& h, int64_t begin, float* scores,
                                               int64_t step, float* factors) {
  using V = typename Lanes<kLanes>::type;
  V most[kRows], sum[kRows];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    MaskRow<kLanes>(h, begin + r, scores + r * step, most[r]);
    sum[r] = V{};
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r)
    Reduce<kLanes>(most[r], [](V& x, const V& other) { x = x < other ? other : x; });
  for (int64_t i = 0; i < h.keys; i += kLanes) {
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      V x;
      std::memcpy(&x, scores + r * step + i, sizeof(V));
      x -= most[r];
      ExpBelow0<kLanes>(x);
      sum[r] += x;
      std::memcpy(scores + r * step + i, &x, sizeof(V));
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) Reduce<kLanes>(sum[r], [](V& x, const V& other) { x += other; });
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) factors[r] = 1 / sum[r][0];
}

template <int kLanes>
[[gnu::always_inline]] inline void SoftmaxRows(const AttentionHead& h, int64_t begin, int64_t rows,
                                               float* scores, int64_t step, float* factors) {
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4)
    SoftmaxSome<kLanes, 4>(h, begin + r, scores + r * step, step, factors + r);
  for (; r < rows; ++r) SoftmaxSome<kLanes, 1>(h, begin + r, scores + r * step, step, factors + r);
}

// One query at a time, on K and V as they are.
template <int kLanes>
[[gnu::always_inline]] inline void OneByOne(const AttentionHead& h, float* scores) {
  using V = typename Lanes<kLanes>::type;
  const int64_t whole = h.depth / kLanes * kLanes;
  for (int64_t i = 0; i < h.queries; ++i) {
    const float* q = h.q + i * h.q_step;
    for (int64_t k = 0; k < h.keys; ++k) {
      const float* key = h.k + k * h.k_step;
      V sums{};
      for (int64_t d = 0; d < whole; d += kLanes) {
        V a, b;
        std::memcpy(&a, q + d, sizeof(V));
        std::memcpy(&b, key + d, sizeof(V));
        sums += a * b;
      }
      Reduce<kLanes>(sums, [](V& x, const V& other) { x += other; });
      float sum = sums[0];
      for (int64_t d = whole; d < h.depth; ++d) sum += q[d] * key[d];
      scores[k] = sum;
    }
    float factor;
    SoftmaxRows<kLanes>(h, i, 1, scores, 0, &factor);
    float* out = h.out + i * h.out_step;
    std::fill_n(out, h.value_depth, 0.f);
    for (int64_t k = 0; k < h.keys; ++k) {
      const float weight = scores[k] * factor, *value = h.v + k * h.v_step;
      for (int64_t d = 0; d < h.value_depth; ++d) out[d] += weight * value[d];
    }
  }
}

// Asks for rows that are read soon: those of a head lie apart, and the processor does not guess
// them.
[[gnu::always_inline]] inline void Ask(const float* rows, int64_t count, int64_t step,
                                       int64_t width) {
  constexpr int64_t kLine = 16;
  for (int64_t r = 0; r < count; ++r)
    for (int64_t i = 0; i < width; i += kLine) __builtin_prefetch(rows + r * step + i);
}

template <int kLanes>
[[gnu::always_inline]] inline void Run(const AttentionHead& h, float* work) {
  if (h.few) return OneByOne<kLanes>(h, work);
  Ask(h.q, std::min(kBlock, h.queries), h.q_step, h.depth);
  Ask(h.v, std::min(kBlock, h.keys), h.v_step, h.value_depth);
  const int64_t scores_step = Padded(h.keys), out_step = Padded(h.value_depth);
  float* scores = work;
  float* out = scores + kBlock * scores_step;
  float* keys = out + kBlock * out_step;
  float* values = keys + scores_step * h.depth;
  PackKeys<kLanes>(h, keys);
  Columns v{h.v, kLanes, h.v_step};
  if (h.value_depth % kLanes != 0) {
    PackValues<kLanes>(h, values);
    v = {values, h.keys * kLanes, kLanes};
  }
  for (int64_t begin = 0; begin < h.queries; begin += kBlock) {
    const int64_t rows = std::min(kBlock, h.queries - begin);
    Multiply<kLanes>(rows, (h.keys + kLanes - 1) / kLanes, h.depth, h.q + begin * h.q_step,
                     h.q_step, {keys, h.depth * kLanes, kLanes}, scores, scores_step);
    Ask(h.out + begin * h.out_step, rows, h.out_step, h.value_depth);
    Ask(h.q + (begin + rows) * h.q_step, std::min(kBlock, h.queries - begin - rows), h.q_step,
        h.depth);
    float factor[kBlock];
    SoftmaxRows<kLanes>(h, begin, rows, scores, scores_step, factor);
    Multiply<kLanes>(rows, (h.value_depth + kLanes - 1) / kLanes, h.keys, scores, scores_step, v,
                     out, out_step);
    for (int64_t r = 0; r < rows; ++r) {
      float* to = h.out + (begin + r) * h.out_step;
      for (int64_t d = 0; d < h.value_depth; ++d) to[d] = out[r * out_step + d] * factor[r];
    }
  }
}

void RunNarrow(const AttentionHead& h, float* work) { Run<8>(h, work); }
HEDDLE_WIDE void RunWide(const AttentionHead& h, float* work) { Run<16>(h, work); }

}  // namespace

bool FewQueries(int64_t queries) { return queries < 4; }

int64_t AttentionWork(bool few, int64_t keys, int64_t depth, int64_t value_depth) {
  if (few) return Padded(keys);
  return kBlock * (Padded(keys) + Padded(value_depth)) + Padded(keys) * depth +
         keys * Padded(value_depth);
}

void RunAttention(const AttentionHead& head, float* work) {
  static const bool wide = WideVectors();
  if (head.keys == 0) {  // sums of nothing, as the products that this stands for have them
    for (int64_t i = 0; i < head.queries; ++i)
      std::fill_n(head.out + i * head.out_step, head.value_depth, 0.f);
    return;
  }
  wide ? RunWide(head, work) : RunNarrow(head, work);
}

}  // namespace heddle
