// A vector for any processor, made of the compiler's vectors, which it splits into registers.
#pragma once

#include <cstdint>

#include "kernels/simd/vector.h"

namespace heddle::simd {
namespace {

// As wide as AVX2, so that both read the same packed matrices.
struct Portable : BaseVector<float, 8> {
  using I = VectorOf<int32_t, 32>;
  static constexpr int kRows = 6;

  static HEDDLE_SIMD_INLINE void Prefetch(const float* p) { __builtin_prefetch(p, 0, 2); }
  static HEDDLE_SIMD_INLINE I SetInt(int32_t x) { return I{} + x; }
  static HEDDLE_SIMD_INLINE T Widen(const int8_t* p) {
    T v = Zero();
    for (int i = 0; i < kLanes; ++i) v[i] = p[i];
    return v;
  }
  static HEDDLE_SIMD_INLINE T LoadSome(const float* p, int n) {
    T v = Zero();
    for (int i = 0; i < n; ++i) v[i] = p[i];
    return v;
  }
  static HEDDLE_SIMD_INLINE void StoreSome(float* p, T v, int n) {
    for (int i = 0; i < n; ++i) p[i] = v[i];
  }
  static HEDDLE_SIMD_INLINE T Add(T a, T b) { return a + b; }
  static HEDDLE_SIMD_INLINE T Sub(T a, T b) { return a - b; }
  static HEDDLE_SIMD_INLINE T Mul(T a, T b) { return a * b; }
  static HEDDLE_SIMD_INLINE T Div(T a, T b) { return a / b; }
  static HEDDLE_SIMD_INLINE T Round(T x) {
    for (int i = 0; i < kLanes; ++i) x[i] = __builtin_nearbyintf(x[i]);
    return x;
  }
  static HEDDLE_SIMD_INLINE T PowerOf2(I n) { return reinterpret_cast<T>((n + 127) << 23); }
  // x * 2^n for whole numbers n, in two factors: 2^n alone may leave the range of exponents.
  static HEDDLE_SIMD_INLINE T TimesPowerOf2(T x, T n) {
    I whole{};
    for (int i = 0; i < kLanes; ++i) whole[i] = n[i] == n[i] ? static_cast<int32_t>(n[i]) : 0;
    const I half = whole >> 1;
    return x * PowerOf2(half) * PowerOf2(whole - half);
  }
  // y * 2^n for shifted = n + 1.5 * 2^23; the result is a normal number.
  static HEDDLE_SIMD_INLINE T AddToExponent(T y, T shifted) {
    return reinterpret_cast<T>(reinterpret_cast<I>(y) + (reinterpret_cast<I>(shifted) << 23));
  }
  // Rounded once, unlike Fma on a processor without such an instruction: the range reduction of the
  // exponential subtracts nearly equal numbers.
  static HEDDLE_SIMD_INLINE T Fms(T a, T b, T c) {
    for (int i = 0; i < kLanes; ++i)
      a[i] = static_cast<float>(static_cast<double>(a[i]) * b[i] - c[i]);
    return a;
  }
  // b if a or b is NaN.
  static HEDDLE_SIMD_INLINE T Max(T a, T b) { return a > b ? a : b; }
  static HEDDLE_SIMD_INLINE T Min(T a, T b) { return a < b ? a : b; }
  // x >= least ? yes : no
  static HEDDLE_SIMD_INLINE T IfAtLeast(T x, T least, T yes, T no) { return x >= least ? yes : no; }
  // The first n elements of x, then those of `rest`.
  static HEDDLE_SIMD_INLINE T FirstOf(T x, int n, T rest) {
    for (int i = 0; i < n; ++i) rest[i] = x[i];
    return rest;
  }
};

}  // namespace
}  // namespace heddle::simd
