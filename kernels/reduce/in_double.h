// Sums, products and means that are added and multiplied in double, whatever the dtype: what
// cancels out leaves nothing, and integers that a result is too great for are cut.
#pragma once

#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/base/convert.h"
#include "kernels/elementwise/arithmetic.h"
#include "kernels/folds/reduce_loops.h"

namespace heddle {

// A result that integers are cut from: those that it is too great for hold their greatest number,
// those that it is too small for their least.
struct Real {
  double value;
  template <typename T>
  static T Cut(double x) {
    constexpr T kMost = std::numeric_limits<T>::max();
    if (x >= static_cast<double>(kMost)) return kMost;
    if constexpr (std::is_same_v<T, uint64_t>)  // beyond the greatest int64, too
      return x >= 0 ? static_cast<uint64_t>(x) : 0;
    else
      return ConvertTo<T>(x);
  }
  explicit operator double() const { return value; }
  explicit operator float() const { return static_cast<float>(value); }
  explicit operator int32_t() const { return Cut<int32_t>(value); }
  explicit operator int64_t() const { return Cut<int64_t>(value); }
  explicit operator uint32_t() const { return static_cast<uint32_t>(Cut<int64_t>(value)); }
  explicit operator uint64_t() const { return Cut<uint64_t>(value); }
};

// Unsigned integers wrap: nobody has another rule for their sums and products.
template <typename T>
using WrapsOrDouble = std::conditional_t<std::is_unsigned_v<T>, T, double>;
template <typename A>
auto CutFrom(A a) {
  if constexpr (std::is_same_v<A, double>)
    return Real{a};
  else
    return a;
}

struct SumInDouble : SumReduction {
  // Whether the reduction of one element is the element, all of its digits.
  static constexpr bool kOneIsItself = true;
  template <typename T>
  using Acc = WrapsOrDouble<T>;
  template <typename A>
  static auto Finish(A a, int64_t) {
    return CutFrom(a);
  }
};
struct ProdInDouble : ProdReduction {
  static constexpr bool kOneIsItself = true;
  template <typename T>
  using Acc = WrapsOrDouble<T>;
  template <typename A>
  static auto Finish(A a, int64_t) {
    return CutFrom(a);
  }
};
struct MeanInDouble : SumReduction {
  static constexpr bool kOneIsItself = true;
  template <typename T>
  using Acc = double;
  // The mean of no floats is NaN, the mean of no integers 0.
  struct Quotient : Real {
    bool empty;
    explicit operator int32_t() const { return empty ? 0 : Cut<int32_t>(value); }
    explicit operator int64_t() const { return empty ? 0 : Cut<int64_t>(value); }
    explicit operator uint32_t() const {
      return static_cast<uint32_t>(static_cast<int64_t>(*this));
    }
    explicit operator uint64_t() const { return empty ? 0 : Cut<uint64_t>(value); }
  };
  static Quotient Finish(double a, int64_t count) {
    return {{a / static_cast<double>(count)}, count == 0};
  }
};
struct AbsInDouble : SumInDouble {
  static constexpr bool kOneIsItself = false;
  template <typename A, typename T>
  static A Load(T x) {
    if constexpr (std::is_unsigned_v<T>)
      return static_cast<A>(x);
    else
      return std::fabs(static_cast<double>(x));
  }
};
struct SquaresInDouble : SumInDouble {
  static constexpr bool kOneIsItself = false;
  template <typename A, typename T>
  static A Load(T x) {
    return MulFn::Apply(static_cast<A>(x), static_cast<A>(x));
  }
};
struct RootInDouble : SquaresInDouble {
  template <typename A>
  static Real Finish(A a, int64_t) {
    return {std::sqrt(static_cast<double>(a))};
  }
};

// The greatest value so far and the sum of the others' exponentials in relation to it.
struct Exponents {
  double most, sum;
  explicit operator double() const { return sum == 0 ? most : most + std::log(sum); }
  template <typename T>
  explicit operator T() const {
    return static_cast<T>(Real{static_cast<double>(*this)});
  }
};
struct LogSumExpInDouble : SumReduction {
  static constexpr bool kOneIsItself = false;
  template <typename T>
  using Acc = Exponents;
  template <typename A>
  static A Init() {
    return {-std::numeric_limits<double>::infinity(), 0};
  }
  template <typename A, typename T>
  static A Load(T x) {
    return {static_cast<double>(x), 1};
  }
  template <typename A>
  static A Combine(A a, A b) {
    if (a.sum == 0) return b;
    if (b.sum == 0) return a;
    if (a.most == b.most) return {a.most, a.sum + b.sum};  // infinities too
    if (std::isnan(a.most) || std::isnan(b.most)) return {a.most + b.most, 1};
    return a.most > b.most ? A{a.most, a.sum + b.sum * std::exp(b.most - a.most)}
                           : A{b.most, b.sum + a.sum * std::exp(a.most - b.most)};
  }
};

}  // namespace heddle
