// Elementary functions written without branches, so that a plain loop over an array becomes SIMD
// code.
//
// float: about 1-2 ulp where nothing else is said, correct at 0, infinities and NaN; double and
// complex numbers: the functions of the standard library. The polynomials are least-maximum fits
// made for these ranges.
#pragma once

#include <bit>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>

#include "kernels/simd/polynomials.h"

namespace heddle {

template <typename T>
inline constexpr bool kIsComplex = false;
template <typename T>
inline constexpr bool kIsComplex<std::complex<T>> = true;

namespace fast {

// c0 + x*(c1 + x*(c2 + …)), every step one fused multiply-add.
template <typename T>
inline T Poly(T, T c) {
  return c;
}
template <typename T, typename... Rest>
inline T Poly(T x, T c0, Rest... rest) {
  return std::fma(Poly(x, rest...), x, c0);
}

// The same for an array of coefficients, from c[kFirst] on.
template <int kFirst = 0, size_t kCount>
inline float Poly(float x, const float (&c)[kCount]) {
  if constexpr (kFirst + 1 == kCount)
    return c[kFirst];
  else
    return std::fma(Poly<kFirst + 1>(x, c), x, c[kFirst]);
}

// c ? a : b. For float by bits: a plain conditional invites the compiler to branch around the
// arithmetic, and a branch ends vectorisation.
template <typename T>
inline T Select(bool c, T a, T b) {
  return c ? a : b;
}
template <>
inline float Select(bool c, float a, float b) {
  const int32_t mask = -static_cast<int32_t>(c);
  return std::bit_cast<float>((std::bit_cast<int32_t>(a) & mask) |
                              (std::bit_cast<int32_t>(b) & ~mask));
}

// Complex numbers are compared by their real parts.
template <typename T>
inline bool Less(T a, T b) {
  if constexpr (kIsComplex<T>)
    return a.real() < b.real();
  else
    return a < b;
}

template <typename T>
inline T Clamp(T x, T low, T high) {  // NaN stays NaN
  x = Select(Less(x, low), low, x);
  return Select(Less(high, x), high, x);
}

template <typename T>
inline T Conj(T x) {
  if constexpr (kIsComplex<T>)
    return std::conj(x);
  else
    return x;
}

template <typename R>
inline std::complex<R> Exp(std::complex<R> x) {
  return std::exp(x);
}
template <typename R>
inline std::complex<R> Log(std::complex<R> x) {
  return std::log(x);
}
template <typename R>
inline std::complex<R> Tanh(std::complex<R> x) {
  return std::tanh(x);
}

inline double Exp(double x) { return std::exp(x); }
// exp(c) = mantissa * 2^exponent, where that is a number.
struct ExpParts {
  float mantissa;
  int32_t exponent;
};
// shifted: c / log(2), rounded by adding kRoundingShift.
inline ExpParts PartsOfExp(float c, float shifted) {
  const float n = shifted - simd::kRoundingShift;
  float r = std::fma(n, -0.693359375f, c);
  r = std::fma(n, 2.12194440e-4f, r);
  const float p = Poly(r, 0.49999994f, 0.16666521f, 0.041668389f, 0.0083687352f, 0.0013814560f);
  return {std::fma(r * r, p, r) + 1.0f,
          std::bit_cast<int32_t>(shifted) - std::bit_cast<int32_t>(simd::kRoundingShift)};
}
inline float Exp(float x) {
  const float c = Clamp(x, -110.0f, 100.0f);
  const auto [e, k] = PartsOfExp(c, std::fma(c, simd::kLog2OfE, simd::kRoundingShift));
  // 2^k in two factors: k may leave the exponent's range on the way to infinity or to a subnormal.
  const int32_t half = k >> 1;
  const float s1 = std::bit_cast<float>((half + 127) << 23);
  const float s2 = std::bit_cast<float>((k - half + 127) << 23);
  return e * s1 * s2;
}

inline double Log(double x) { return std::log(x); }
inline float Log(float x) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const bool tiny = x < std::numeric_limits<float>::min();
  const float a = Select(tiny, x * 8388608.0f, x);
  // The exponent is taken so that the mantissa lies in [sqrt(1/2), sqrt(2)).
  // The difference is unsigned: it leaves int32 for negative numbers, whose result is NaN anyway.
  const auto bits = static_cast<int32_t>(std::bit_cast<uint32_t>(a) - 0x3f3504f3u);
  const float t = std::bit_cast<float>((bits & 0x7fffff) + 0x3f3504f3) - 1.0f;
  const float n = static_cast<float>((bits >> 23) - (-static_cast<int32_t>(tiny) & 23));
  const float p = Poly(t, 0.33333331f, -0.25000819f, 0.20001227f, -0.16623357f, 0.14201756f,
                       -0.13160183f, 0.12761578f, -0.076344974f);
  float y = t * t * std::fma(t, p, -0.5f);
  y = std::fma(n, -2.12194440e-4f, y);
  y = std::fma(n, 0.693359375f, y + t);
  y = Select(x == kInf, kInf, y);
  y = Select(x == 0.0f, -kInf, y);
  return Select(x >= 0.0f, y, std::numeric_limits<float>::quiet_NaN());
}

inline double Tanh(double x) { return std::tanh(x); }
// Off by 0.6 ulp in the mean and by 5 ulp (3e-7) at most, which happens beyond 5; never above 1.
inline float Tanh(float x) {
  const float c = Clamp(x, -simd::kTanhBound, simd::kTanhBound), z = c * c;
  return c * Poly(z, simd::kTanhP) / Poly(z, simd::kTanhQ);
}

inline double Erf(double x) { return std::erf(x); }
inline float Erf(float x) {
  const float c = Clamp(x, -simd::kErfBound, simd::kErfBound), z = c * c;
  return Clamp(c * Poly(z, simd::kErfP) / Poly(z, simd::kErfQ), -1.0f, 1.0f);
}

template <typename T>
inline T Sigmoid(T x) {
  return T(1) / (T(1) + Exp(-x));
}

// The sigmoid in fewer steps than Sigmoid, off by up to 2e-7 whatever the value: for gates, which
// other values are multiplied with.
inline float Gate(float x) { return std::fma(0.5f, Tanh(0.5f * x), 0.5f); }

// log(1 + exp(x)) without overflow.
template <typename R>
inline std::complex<R> Softplus(std::complex<R> x) {
  return std::log(R(1) + std::exp(x));
}
inline double Softplus(double x) { return std::fmax(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); }
inline float Softplus(float x) {
  const float e = Exp(-std::fabs(x));
  const float u = 1.0f + e;  // log1p(e) = log(u) + (e - (u - 1)) / u
  const float l = Log(u) + (e - (u - 1.0f)) / u;
  return Select(x > 0.0f, x, 0.0f) + Select(x == x, l, x);
}

}  // namespace fast
}  // namespace heddle
