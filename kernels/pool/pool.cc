#include "kernels/pool/pool.h"

#include <Eigen/Core>
#include <algorithm>
#include <limits>
#include <type_traits>

#include "core/threads/look_meter.h"
#include "kernels/simd/vector.h"

namespace heddle {
namespace {

// What is computed of a window. A comparison with NaN is false, so that the order of its operands
// decides what becomes of NaN; both orders are one instruction.
enum class Of {
  kAverage,
  kMax,         // NaN lasts until the next number: it stays where it is the last, or alone
  kMaxNumbers,  // NaN is passed over
  kMaxOrNan,    // NaN wins
};

// Of vectors too.
template <Of kOf, typename V>
[[gnu::always_inline]] inline V Taken(V acc, V v) {
  if constexpr (kOf == Of::kAverage) return acc + v;
  if constexpr (kOf == Of::kMax) return acc > v ? acc : v;
  const V greater = v > acc ? v : acc;  // acc, where that is NaN
  if constexpr (kOf == Of::kMaxOrNan) return v != v ? v : greater;
  return greater;
}

template <typename T, Of kOf>
T First(const PoolGeometry& g) {
  if constexpr (kOf == Of::kAverage) return T(0);
  return g.from_infinity ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
}

template <typename T>
using Row = Eigen::Map<Eigen::Array<T, Eigen::Dynamic, 1>>;
template <typename T>
using ConstRow = Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>>;

// Calls fn(d, h, w, index) for the windows of output positions [begin, end) of one image.
template <typename Fn>
void ForWindows(const PoolGeometry& g, int64_t begin, int64_t end, Fn&& fn) {
  if (begin >= end) return;
  size_t w = static_cast<size_t>(begin % g.out[2]);
  size_t h = static_cast<size_t>(begin / g.out[2] % g.out[1]);
  size_t d = static_cast<size_t>(begin / (g.out[2] * g.out[1]));
  for (const int64_t i : Watched(begin, end)) {
    fn(g.windows[0][d], g.windows[1][h], g.windows[2][w], i);
    if (++w < g.windows[2].size()) continue;
    w = 0;
    if (++h < g.windows[1].size()) continue;
    h = 0;
    ++d;
  }
}

// Upper bound for the input positions of a window.
int64_t MostTaps(const PoolGeometry& g) {
  int64_t taps = 1;
  for (const auto& windows : g.windows) {
    int64_t most = 1;
    for (const PoolWindow& w : windows) most = std::max(most, w.end - w.begin);
    taps *= most;
  }
  return taps;
}

// The same for all windows of an image.
template <typename Fn>
void ForAllWindows(const PoolGeometry& g, Fn&& fn) {
  const auto between =
      static_cast<size_t>(std::max<int64_t>(1, LookMeter::kBetweenLooks / MostTaps(g)));
  size_t left = between;
  int64_t i = 0;
  const std::vector<PoolWindow>& columns = g.windows[2];
  for (const PoolWindow& d : g.windows[0])
    for (const PoolWindow& h : g.windows[1])
      for (size_t w = 0; w < columns.size();) {
        const size_t end = w + std::min(left, columns.size() - w);  // nothing is counted up to here
        left -= end - w;
        for (; w < end; ++w) fn(d, h, columns[w], i++);
        if (left > 0) continue;
        left = between;
        LookForInterrupt();
      }
}

// The sizes of windows that are worth code of their own; `kSize` 0 stands for any other.
template <typename Fn>
void ForSize(const PoolGeometry& g, const PoolWindow& h, const PoolWindow& w, Fn&& fn) {
  const int64_t rows = h.end - h.begin, cols = w.end - w.begin;
  if (g.spatial == 2 && rows == 2 && cols == 2) return fn(std::integral_constant<int, 2>());
  if (g.spatial == 2 && rows == 3 && cols == 3) return fn(std::integral_constant<int, 3>());
  fn(std::integral_constant<int, 0>());
}

// Calls fn(offset, length) for the stretches of consecutive input positions in a window.
template <typename Fn>
void ForLines(const PoolGeometry& g, const PoolWindow& d, const PoolWindow& h, const PoolWindow& w,
              Fn&& fn) {
  const bool whole = w.begin == 0 && w.end == g.in[2];
  for (int64_t z = d.begin; z < d.end; ++z) {
    if (whole) {
      fn((z * g.in[1] + h.begin) * g.in[2], (h.end - h.begin) * g.in[2]);
      continue;
    }
    for (int64_t y = h.begin; y < h.end; ++y)
      fn((z * g.in[1] + y) * g.in[2] + w.begin, w.end - w.begin);
  }
}

// Adds in an order that depends on the length alone, not on where the memory lies: equal planes
// have equal sums.
template <typename T>
T Sum(const T* x, int64_t n) {
  constexpr int kLanes = 64 / sizeof(T);
  using Lanes = Eigen::Array<T, kLanes, 1>;
  Lanes lanes = Lanes::Zero();
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) lanes += Eigen::Map<const Lanes>(x + i);
  T rest(0);
  for (; i < n; ++i) rest += x[i];
  return lanes.sum() + rest;
}

template <typename T, Of kOf>
T MaxOf(T acc, const T* x, int64_t n) {
  constexpr int kLanes = 64 / sizeof(T);
  T lanes[kLanes];
  std::fill_n(lanes, kLanes, acc);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int k = 0; k < kLanes; ++k) lanes[k] = Taken<kOf>(lanes[k], x[i + k]);
  for (const T lane : lanes) acc = Taken<kOf>(acc, lane);
  for (; i < n; ++i) acc = Taken<kOf>(acc, x[i]);
  return acc;
}

template <typename T, Of kOf>
T Fold(T acc, const T* x, int64_t n) {
  if (n >= 32) {
    if constexpr (kOf == Of::kAverage)
      return acc + Sum(x, n);
    else
      return MaxOf<T, kOf>(acc, x, n);
  }
  for (int64_t i = 0; i < n; ++i) acc = Taken<kOf>(acc, x[i]);
  return acc;
}

template <typename T, Of kOf>
void Plane(const PoolGeometry& g, const T* plane, T* to) {
  ForAllWindows(g, [&](const PoolWindow& d, const PoolWindow& h, const PoolWindow& w, int64_t i) {
    T acc = First<T, kOf>(g);
    ForSize(g, h, w, [&](auto size) {
      if constexpr (size != 0) {
        const T* from = plane + h.begin * g.in[2] + w.begin;
        for (int y = 0; y < size; ++y)
          for (int x = 0; x < size; ++x) acc = Taken<kOf>(acc, from[y * g.in[2] + x]);
      } else {
        ForLines(g, d, h, w,
                 [&](int64_t at, int64_t n) { acc = Fold<T, kOf>(acc, plane + at, n); });
      }
    });
    to[i] = kOf != Of::kAverage ? acc : acc / static_cast<T>(g.Divisor(d, h, w));
  });
}

// Plane of halved windows.
template <typename T, Of kOf>
void HalvedPlane(const PoolGeometry& g, const T* plane, T* to) {
  const int64_t columns = g.out[2];
  LookMeter meter;
  for (int64_t h = 0; h < g.out[1]; ++h, to += columns) {
    meter.Did(4 * columns);
    const T *a = plane + 2 * h * g.in[2], *b = a + g.in[2];
    for (int64_t w = 0; w < columns; ++w) {
      T acc = Taken<kOf>(First<T, kOf>(g), a[2 * w]);
      acc = Taken<kOf>(acc, a[2 * w + 1]);
      acc = Taken<kOf>(acc, b[2 * w]);
      acc = Taken<kOf>(acc, b[2 * w + 1]);
      to[w] = kOf != Of::kAverage ? acc : acc / T(4);
    }
  }
}

template <typename T>
bool HasNan(const T* x, int64_t n) {
  int nans = 0;  // no early exit, so that the loop becomes vectors
  for (int64_t i = 0; i < n; ++i) nans |= x[i] != x[i];
  return nans != 0;
}

template <typename T, Of kOf>
void Planes(const KernelContext& ctx, const PoolGeometry& g, const T* x, T* out) {
  const int64_t cost = g.in_size() + g.out_size();
  const auto usual = g.halved ? &HalvedPlane<T, kOf> : &Plane<T, kOf>;
  constexpr Of kWithoutNan = kOf == Of::kMaxOrNan ? Of::kMaxNumbers : kOf;
  const auto without_nan = g.halved ? &HalvedPlane<T, kWithoutNan> : &Plane<T, kWithoutNan>;
  ctx.ParallelFor(g.batch * g.channels, 1 + 32768 / (1 + cost), [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const T* plane = x + p * g.in_size();
      // A plane without NaN takes the order of operands that is one instruction.
      const bool has_nan = kOf != Of::kMaxOrNan || HasNan(plane, g.in_size());
      (has_nan ? usual : without_nan)(g, plane, out + p * g.out_size());
    }
  });
}

// kVectors vectors of kLanes channels of one output position, which stay in registers. The window
// has kSize rows and columns, or, with 0, any.
//
// kMaxOrNan is computed as kMaxNumbers, one instruction a vector, while one comparison for two
// vectors looks for NaN; a block that has one is computed again (kAgain).
template <typename T, Of kOf, int kLanes, int kVectors, int kSize, bool kAgain = false>
inline void PixelChannels(const PoolGeometry& g, const PoolWindow& d, const PoolWindow& h,
                          const PoolWindow& w, const T* from, T factor, T* to) {
  using V = simd::VectorOf<T, kLanes * sizeof(T)>;
  using Vu = simd::UnalignedVectorOf<T, kLanes * sizeof(T)>;
  constexpr bool kLookForNan = kOf == Of::kMaxOrNan && !kAgain;
  constexpr Of kStep = kLookForNan ? Of::kMaxNumbers : kOf;
  using Mask = decltype(V{} == V{});
  Mask numbers = ~Mask{};
  V acc[kVectors];
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) acc[v] = V{} + First<T, kOf>(g);
  const int64_t step = g.channels;
  const auto take = [&](const T* pixel) __attribute__((always_inline)) {
    V in[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      in[v] = *reinterpret_cast<const Vu*>(pixel + v * kLanes);
      acc[v] = Taken<kStep>(acc[v], in[v]);
    }
    if constexpr (kLookForNan) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; v += 2) {
        const V& other = in[v + 1 < kVectors ? v + 1 : v];
        numbers &= (in[v] < other) | (in[v] >= other);  // neither holds: one of them is NaN
      }
    }
  };
  if constexpr (kSize > 0) {
    const T* row = from + (h.begin * g.in[2] + w.begin) * step;
#pragma GCC unroll 3
    for (int y = 0; y < kSize; ++y, row += g.in[2] * step)
#pragma GCC unroll 3
      for (int k = 0; k < kSize; ++k) take(row + k * step);
  } else {
    for (int64_t z = d.begin; z < d.end; ++z)
      for (int64_t y = h.begin; y < h.end; ++y) {
        const T* pixel = from + ((z * g.in[1] + y) * g.in[2] + w.begin) * step;
        for (int64_t k = w.begin; k < w.end; ++k, pixel += step) take(pixel);
      }
  }
  if constexpr (kLookForNan) {
    using Word = std::conditional_t<sizeof(V) < sizeof(int64_t), int32_t, int64_t>;
    const auto words = reinterpret_cast<simd::VectorOf<Word, sizeof(V)>>(numbers);
    Word all = -1;
    for (size_t k = 0; k < sizeof(V) / sizeof(Word); ++k) all &= words[k];
    if (all != -1) [[unlikely]]
      return PixelChannels<T, kOf, kLanes, kVectors, kSize, true>(g, d, h, w, from, factor, to);
  }
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v)
    *reinterpret_cast<Vu*>(to + v * kLanes) = kOf != Of::kAverage ? acc[v] : acc[v] * factor;
}

template <typename T, Of kOf>
T Factor(const PoolGeometry& g, const PoolWindow& d, const PoolWindow& h, const PoolWindow& w) {
  return kOf != Of::kAverage ? T(1) : T(1) / static_cast<T>(g.Divisor(d, h, w));
}

// One output position, `n` channels from `from` on; sums are multiplied by `factor`.
template <typename T, Of kOf>
void Pixel(const PoolGeometry& g, const PoolWindow& d, const PoolWindow& h, const PoolWindow& w,
           T factor, const T* from, int64_t n, T* to) {
  constexpr int kLanes = 32 / sizeof(T), kHalf = kLanes / 2;
  ForSize(g, h, w, [&](auto size) {
    int64_t c = 0;
    for (; c + 8 * kLanes <= n; c += 8 * kLanes)
      PixelChannels<T, kOf, kLanes, 8, size>(g, d, h, w, from + c, factor, to + c);
    for (; c + 2 * kLanes <= n; c += 2 * kLanes)
      PixelChannels<T, kOf, kLanes, 2, size>(g, d, h, w, from + c, factor, to + c);
    for (; c + kLanes <= n; c += kLanes)
      PixelChannels<T, kOf, kLanes, 1, size>(g, d, h, w, from + c, factor, to + c);
    if (c == n) return;
    // The last vector takes some channels once more.
    if (n >= kLanes)
      return PixelChannels<T, kOf, kLanes, 1, size>(g, d, h, w, from + n - kLanes, factor,
                                                    to + n - kLanes);
    if (n >= kHalf) {
      PixelChannels<T, kOf, kHalf, 1, size>(g, d, h, w, from, factor, to);
      return PixelChannels<T, kOf, kHalf, 1, size>(g, d, h, w, from + n - kHalf, factor,
                                                   to + n - kHalf);
    }
    for (; c < n; ++c) PixelChannels<T, kOf, 1, 1, size>(g, d, h, w, from + c, factor, to + c);
  });
}

// Number of parts that a large window is cut into by rows; depends on the window alone, so that
// sums do not depend on the number of threads. 0: the window is not cut.
int64_t RowParts(const PoolGeometry& g, const PoolWindow& d, const PoolWindow& h,
                 const PoolWindow& w) {
  constexpr int64_t kLeast = 1 << 13, kMost = 8;  // numbers, parts
  const int64_t rows = h.end - h.begin, numbers = rows * (w.end - w.begin) * g.channels;
  return d.end - d.begin != 1 || rows < 2 || numbers < kLeast ? 0 : std::min(rows, kMost);
}

// One output position of a large window, by rows: those that a thread reads here it most often
// wrote in the operator before, and reads in the one behind. By channels, each would read parts of
// all pixels.
template <typename T, Of kOf>
void PixelByRows(const KernelContext& ctx, const PoolGeometry& g, const PoolWindow& d,
                 const PoolWindow& h, const PoolWindow& w, int64_t parts, const T* image, T* to) {
  const Tensor scratch = ctx.Scratch(kDTypeOf<T>, {parts, g.channels});
  T* const sums = const_cast<T*>(scratch.data<T>());
  ctx.ParallelFor(parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t rows = h.end - h.begin;
      PoolWindow part = h;
      part.begin = h.begin + i * rows / parts;
      part.end = h.begin + (i + 1) * rows / parts;
      Pixel<T, kOf>(g, d, part, w, T(1), image, g.channels, sums + i * g.channels);
    }
  });
  const T factor = Factor<T, kOf>(g, d, h, w);
  for (int64_t c = 0; c < g.channels; ++c) to[c] = sums[c];
  for (int64_t i = 1; i < parts; ++i)
    for (int64_t c = 0; c < g.channels; ++c) {
      const T in = sums[i * g.channels + c];
      to[c] = Taken<kOf>(to[c], in);
    }
  if (kOf == Of::kAverage)
    for (int64_t c = 0; c < g.channels; ++c) to[c] *= factor;
}

template <typename T, Of kOf>
void Pixels(const KernelContext& ctx, const PoolGeometry& g, const T* x, T* out) {
  const int64_t taps = MostTaps(g);
  const int64_t positions = g.batch * g.out_size();
  if (positions < 2 * ctx.threads()) {  // a few large windows: each is shared out
    for (int64_t p = 0; p < positions; ++p) {
      const T* image = x + p / g.out_size() * g.in_size() * g.channels;
      const int64_t at = p % g.out_size();
      ForWindows(g, at, at + 1,
                 [&](const PoolWindow& d, const PoolWindow& h, const PoolWindow& w, int64_t) {
                   T* const to = out + p * g.channels;
                   if (const int64_t parts = RowParts(g, d, h, w))
                     return PixelByRows<T, kOf>(ctx, g, d, h, w, parts, image, to);
                   const T factor = Factor<T, kOf>(g, d, h, w);
                   ctx.ParallelFor(g.channels, std::max<int64_t>(64, 65536 / taps),
                                   [&](int64_t begin, int64_t end) {
                                     Pixel<T, kOf>(g, d, h, w, factor, image + begin, end - begin,
                                                   to + begin);
                                   });
                 });
    }
    return;
  }
  const int64_t reads = taps * std::max<int64_t>(g.channels, 1);
  ctx.ParallelFor(positions, 1 + 65536 / reads, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end;) {
      const int64_t image = p / g.out_size(), first = p % g.out_size();
      const int64_t last = std::min(g.out_size(), first + end - p);
      const T* from = x + image * g.in_size() * g.channels;
      T* to = out + image * g.out_size() * g.channels;
      ForWindows(g, first, last,
                 [&](const PoolWindow& d, const PoolWindow& h, const PoolWindow& w, int64_t i) {
                   Pixel<T, kOf>(g, d, h, w, Factor<T, kOf>(g, d, h, w), from, g.channels,
                                 to + i * g.channels);
                 });
      p += last - first;
    }
  });
}

// To the first element of a window that is the maximum. Without a branch on where it lies, which
// nothing foretells.
template <typename T, int kSize>
inline void SmallMaxBackward(const T* __restrict x, int64_t row, int64_t step, T best, T grad,
                             T* __restrict to) {
  T part[kSize * kSize];
  bool open = true;
#pragma GCC unroll 9
  for (int i = 0; i < kSize * kSize; ++i) {
    const bool here = open & (x[(i / kSize * row + i % kSize) * step] == best);
    part[i] = here ? grad : T(0);
    open &= !here;
  }
#pragma GCC unroll 9
  for (int i = 0; i < kSize * kSize; ++i) to[(i / kSize * row + i % kSize) * step] += part[i];
}

// The gradient of one channel of one image.
template <typename T, bool kMax, bool kDense>
void PlaneBackward(const PoolGeometry& g, const T* x, const T* out, const T* grad, T* to) {
  const int64_t step = kDense ? 1 : g.pixel_step();
  for (const auto piece : Stretches(g.in_size()))
    for (int64_t i = piece.begin; i < piece.end; ++i) to[i * step] = T(0);
  ForAllWindows(g, [&](const PoolWindow& d, const PoolWindow& h, const PoolWindow& w, int64_t i) {
    // In single precision, as in Paddle, or as a quotient.
    const int64_t taps = kMax ? 1 : g.Divisor(d, h, w);
    const T part = kMax        ? T(0)
                   : g.divides ? grad[i * step] / static_cast<T>(taps)
                               : grad[i * step] * static_cast<T>(1.f / static_cast<float>(taps));
    ForSize(g, h, w, [&](auto size) {
      const int64_t first = (h.begin * g.in[2] + w.begin) * step;
      if constexpr (size != 0 && kMax) {
        SmallMaxBackward<T, size>(x + first, g.in[2], step, out[i * step], grad[i * step],
                                  to + first);
      } else if constexpr (size != 0) {
        for (int y = 0; y < size; ++y)
          for (int k = 0; k < size; ++k) to[first + (y * g.in[2] + k) * step] += part;
      } else {
        bool open = true;
        ForLines(g, d, h, w, [&](int64_t at, int64_t n) {
          for (int64_t j = at; j < at + n && open; ++j) {
            if (!kMax) {
              to[j * step] += part;
            } else if (x[j * step] == out[i * step]) {
              to[j * step] += grad[i * step];
              open = false;
            }
          }
        });
      }
    });
  });
}

// PlaneBackward of maxima of halved windows, channels first: to the first pixel that is the
// maximum.
template <typename T>
void HalvedMaxBackward(const PoolGeometry& g, const T* x, const T* out, const T* grad, T* to) {
  const int64_t columns = g.out[2], width = g.in[2];
  LookMeter meter;
  // What no window covers: the last row or column of an odd number.
  std::fill(to + 2 * g.out[1] * width, to + g.in_size(), T(0));
  for (int64_t h = 0; h < g.out[1]; ++h, out += columns, grad += columns, x += 2 * width) {
    meter.Did(4 * columns);
    const T *a = x, *b = x + width;
    T *to_a = to + 2 * h * width, *to_b = to_a + width;
    for (int64_t w = 0; w < columns; ++w) {
      const T best = out[w];
      T left = T(0) + grad[w];  // no pixel has had it yet
      const auto take = [&](T pixel) __attribute__((always_inline)) {
        const T taken = pixel == best ? left : T(0);
        left = pixel == best ? T(0) : left;
        return taken;
      };
      to_a[2 * w] = take(a[2 * w]);
      to_a[2 * w + 1] = take(a[2 * w + 1]);
      to_b[2 * w] = take(b[2 * w]);
      to_b[2 * w + 1] = take(b[2 * w + 1]);
    }
    for (int64_t k = 2 * columns; k < width; ++k) to_a[k] = to_b[k] = T(0);
  }
}

}  // namespace

template <typename T>
void PoolForward(const KernelContext& ctx, const PoolGeometry& g, const T* x, T* out) {
  const auto run = [&](auto of) {
    constexpr Of kOf = decltype(of)::value;
    g.channels_last ? Pixels<T, kOf>(ctx, g, x, out) : Planes<T, kOf>(ctx, g, x, out);
  };
  if (!g.max) return run(std::integral_constant<Of, Of::kAverage>());
  if (g.keep_nan) return run(std::integral_constant<Of, Of::kMaxOrNan>());
  g.skip_nan ? run(std::integral_constant<Of, Of::kMaxNumbers>())
             : run(std::integral_constant<Of, Of::kMax>());
}

template <typename T>
void PoolBackward(const KernelContext& ctx, const PoolGeometry& g, const T* x, const T* out,
                  const T* out_grad, T* x_grad) {
  const int64_t cost = g.in_size() + g.out_size();
  const bool dense = g.pixel_step() == 1;
  const auto run = g.max
                       ? (dense ? &PlaneBackward<T, true, true> : &PlaneBackward<T, true, false>)
                       : (dense ? &PlaneBackward<T, false, true> : &PlaneBackward<T, false, false>);
  const bool halved = g.max && !g.channels_last && g.halved;
  ctx.ParallelFor(g.batch * g.channels, 1 + 16384 / (1 + cost), [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const int64_t n = p / g.channels, c = p % g.channels;
      const int64_t in_at = n * g.in_size() * g.channels + c * g.in_channel_step();
      const int64_t out_at = n * g.out_size() * g.channels + c * g.out_channel_step();
      (halved ? &HalvedMaxBackward<T> : run)(g, g.max ? x + in_at : nullptr,
                                             g.max ? out + out_at : nullptr, out_grad + out_at,
                                             x_grad + in_at);
    }
  });
}

template void PoolForward<float>(const KernelContext&, const PoolGeometry&, const float*, float*);
template void PoolForward<double>(const KernelContext&, const PoolGeometry&, const double*,
                                  double*);
template void PoolBackward<float>(const KernelContext&, const PoolGeometry&, const float*,
                                  const float*, const float*, float*);
template void PoolBackward<double>(const KernelContext&, const PoolGeometry&, const double*,
                                   const double*, const double*, double*);

}  // namespace heddle
