// Local response normalisation.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace heddle {

// Calls fn with a function that raises to the power -beta. The exponents that networks use need no
// logarithm: x^(-3/4) = 1 / (sqrt(x) sqrt(sqrt(x))). NaN, 0 and infinity give what std::pow gives.
template <typename T, typename Fn>
void WithNegativePower(T beta, Fn&& fn) {
  if (beta == T(0.75))
    fn([](T x) {
      const T root = std::sqrt(x);
      return T(1) / (root * std::sqrt(root));
    });
  else if (beta == T(0.5))
    fn([](T x) { return T(1) / std::sqrt(x); });
  else if (beta == T(1))
    fn([](T x) { return T(1) / x; });
  else
    fn([beta](T x) { return std::pow(x, -beta); });
}

// The numbers that a piece of work keeps in the first cache.
inline constexpr int64_t kLrnPiece = 1024;

// k + alpha times the sum of squares over n channels, `before` of them in front of the one it is
// for: what local response normalisation divides by (Krizhevsky, Sutskever, Hinton: ImageNet
// classification with deep convolutional neural networks, 2012, section 3.3).
template <typename T>
struct LrnNorm {
  T k, alpha;
  int64_t n, before;

  // sum[i] = k + alpha times the squares of the window around channel `c`, for `count` pixels that
  // lie one after another, channels `step` apart.
  void OfPixels(const T* x, int64_t c, int64_t channels, int64_t step, int64_t count,
                T* sum) const {
    std::fill_n(sum, count, k);
    const int64_t last = std::min(channels, c - before + n);
    for (int64_t d = std::max<int64_t>(0, c - before); d < last; ++d)
      for (int64_t i = 0; i < count; ++i) sum[i] += alpha * x[d * step + i] * x[d * step + i];
  }
  // The same for channels c … c + count of one pixel, which lie one after another.
  void OfChannels(const T* x, int64_t c, int64_t channels, int64_t count, T* sum) const {
    std::fill_n(sum, count, k);
    // A window that reaches beyond all channels on a side is cut there.
    const int64_t first = std::max(-before, -(c + count)),
                  last = std::min(n - before, channels - c);
    for (int64_t d = first; d < last; ++d) {
      const int64_t begin = std::max<int64_t>(0, -(c + d));
      const int64_t end = std::min(count, channels - c - d);
      const T* from = x + c + d;
      for (int64_t i = begin; i < end; ++i) sum[i] += alpha * from[i] * from[i];
    }
  }
  // Calls fn(first channel, count, sums) for pieces of one pixel's channels.
  template <typename Fn>
  void ForPixel(const T* x, int64_t channels, Fn&& fn) const {
    T sum[kLrnPiece];
    for (int64_t c = 0; c < channels; c += kLrnPiece) {
      const int64_t count = std::min(kLrnPiece, channels - c);
      OfChannels(x, c, channels, count, sum);
      fn(c, count, sum);
    }
  }
};

}  // namespace heddle
