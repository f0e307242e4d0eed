// Functors of the arithmetic operators.
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/elementwise/binary_op.h"

namespace heddle {

// Signed integers wrap instead of overflowing.
template <typename T, typename Fn>
T Wrapping(T a, T b, Fn fn) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    using U = std::common_type_t<std::make_unsigned_t<T>, unsigned>;
    return static_cast<T>(fn(static_cast<U>(a), static_cast<U>(b)));
  } else {
    return static_cast<T>(fn(a, b));
  }
}

struct AddFn {
  static constexpr int64_t kGrain = kElementGrain;
  template <typename T>
  static T Apply(T a, T b) {
    return Wrapping(a, b, [](auto x, auto y) { return x + y; });
  }
};

struct SubFn {
  static constexpr int64_t kGrain = kElementGrain;
  template <typename T>
  static T Apply(T a, T b) {
    return Wrapping(a, b, [](auto x, auto y) { return x - y; });
  }
};

// (a+bi)(c+di) as written: the library's version first looks for infinities.
template <typename R>
std::complex<R> Multiply(std::complex<R> a, std::complex<R> b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

struct MulFn {
  static constexpr int64_t kGrain = kElementGrain;
  template <typename T>
  static T Apply(T a, T b) {
    return Wrapping(a, b, [](auto x, auto y) { return x * y; });
  }
  template <typename R>
  static std::complex<R> Apply(std::complex<R> a, std::complex<R> b) {
    return Multiply(a, b);
  }
};

// Integers: the divisor is not 0 (NoZeroDivisor). min / -1 wraps.
struct DivFn {
  static constexpr int64_t kGrain = kElementGrain;
  template <typename T>
  static T Apply(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      if constexpr (std::is_signed_v<T>)
        if (b == T(-1)) return SubFn::Apply(T(0), a);
      return static_cast<T>(a / b);
    } else {
      return a / b;
    }
  }
};

// An error when an integer tensor that one divides by holds a 0.
Status NoZeroDivisor(const Tensor& y);

template <typename T>
T Conj(T x) {
  return x;
}
template <typename R>
std::complex<R> Conj(std::complex<R> x) {
  return std::conj(x);
}

}  // namespace heddle
