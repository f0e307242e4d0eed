// Elementary functions of a vector, for the microkernels. fast_math.h has the functions of plain
// loops, whose exponential is more exact.
#pragma once

#include "kernels/simd/polynomials.h"
#include "kernels/simd/vector.h"

namespace heddle::simd {
namespace {

// 2^f for -1/2 <= f <= 1/2: a least-maximum fit of degree 5, 1 at 0.
template <typename V>
HEDDLE_SIMD_INLINE typename V::T Exp2Fraction(typename V::T f) {
  typename V::T p = V::Fma(f, V::Set(0.00132694072f), V::Set(0.00967129413f));
  p = V::Fma(p, f, V::Set(0.0555071123f));
  p = V::Fma(p, f, V::Set(0.240222469f));
  p = V::Fma(p, f, V::Set(0.693147004f));
  return V::Fma(p, f, V::Set(1.f));
}

// c[0] + x * (c[1] + x * (c[2] + …)), every step one fused multiply-add.
template <typename V, int kCount>
HEDDLE_SIMD_INLINE typename V::T Poly(typename V::T x, const float (&c)[kCount]) {
  typename V::T p = V::Set(c[kCount - 1]);
#pragma GCC unroll 8
  for (int i = kCount - 2; i >= 0; --i) p = V::Fma(p, x, V::Set(c[i]));
  return p;
}

// e^x = 2^n 2^f for the whole number n next to log2(e) x and the rest f. Off by at most 3e-7 of the
// value for |x| < 10, 1.5e-6 anywhere.
template <typename V>
HEDDLE_SIMD_INLINE typename V::T Exp(typename V::T x) {
  using T = typename V::T;
  const T c = V::Min(V::Set(100.f), V::Max(V::Set(-110.f), x));  // NaN stays
  const T log2 = V::Set(kLog2OfE);
  const T n = V::Round(V::Mul(c, log2));
  const T f = V::Fms(c, log2, n);
  return V::TimesPowerOf2(Exp2Fraction<V>(f), n);
}

// The same for x <= 0, with a third fewer instructions: n is rounded by adding 1.5 * 2^23, whose
// sum holds n in its low bits, and 2^n is one addition to the exponent. 0 below the least normal
// number, NaN for NaN.
template <typename V>
HEDDLE_SIMD_INLINE typename V::T ExpBelow0(typename V::T x) {
  using T = typename V::T;
  const T log2 = V::Set(kLog2OfE), least = V::Set(-87.3f), round = V::Set(kRoundingShift);
  const T c = V::Max(least, x);  // NaN stays
  const T shifted = V::Fma(c, log2, round);
  const T f = V::Fms(c, log2, V::Sub(shifted, round));
  const T y = V::AddToExponent(Exp2Fraction<V>(f), shifted);
  return V::IfAtLeast(x, least, y, V::Sub(c, c));
}

template <typename V>
HEDDLE_SIMD_INLINE typename V::T Swish(typename V::T x, float alpha) {
  return V::Div(x, V::Add(V::Set(1.f), Exp<V>(V::Mul(V::Set(-alpha), x))));
}
template <typename V>
HEDDLE_SIMD_INLINE typename V::T Sigmoid(typename V::T x) {
  return V::Div(V::Set(1.f), V::Add(V::Set(1.f), Exp<V>(V::Sub(V::Zero(), x))));
}
template <typename V>
HEDDLE_SIMD_INLINE typename V::T Tanh(typename V::T x) {
  using T = typename V::T;
  const T c = V::Min(V::Set(kTanhBound), V::Max(V::Set(-kTanhBound), x));  // NaN stays
  const T z = V::Mul(c, c);
  return V::Div(V::Mul(c, Poly<V>(z, kTanhP)), Poly<V>(z, kTanhQ));
}
// The sigmoid in fewer steps than Sigmoid, off by up to 2e-7 whatever the value: for gates, which
// other values are multiplied with.
template <typename V>
HEDDLE_SIMD_INLINE typename V::T Gate(typename V::T x) {
  const typename V::T half = V::Set(0.5f);
  return V::Fma(half, Tanh<V>(V::Mul(half, x)), half);
}
// 0.5 x (1 + erf(x / sqrt(2))).
template <typename V>
HEDDLE_SIMD_INLINE typename V::T GeluErf(typename V::T x) {
  using T = typename V::T;
  const T c = V::Min(V::Set(kErfBound),
                     V::Max(V::Set(-kErfBound), V::Mul(x, V::Set(0.70710678118654752f))));
  const T z = V::Mul(c, c);
  const T ratio = V::Div(V::Mul(c, Poly<V>(z, kErfP)), Poly<V>(z, kErfQ));
  const T erf = V::Min(V::Set(1.f), V::Max(V::Set(-1.f), ratio));
  const T half = V::Mul(V::Set(0.5f), x);
  return V::Fma(half, erf, half);
}
// The same in half the steps, off by at most 9e-5: for results that are rounded to bfloat16 or to 8
// bits. The factor of x is 0 or 1 where its argument is clamped.
template <typename V>
HEDDLE_SIMD_INLINE typename V::T GeluErfNear(typename V::T x) {
  using T = typename V::T;
  constexpr float kBound = 4.2f;
  constexpr float kFactors[] = {0.3984658718f,    -0.06552819908f,  9.298227727e-3f,
                                -9.506570641e-4f, 6.689064321e-5f,  -3.037928082e-6f,
                                7.941327596e-8f,  -9.017515068e-10f};
  const T c = V::Min(V::Set(kBound), V::Max(V::Set(-kBound), x));  // NaN stays
  const T p = Poly<V>(V::Mul(c, c), kFactors);
  return V::Mul(x, V::Max(V::Zero(), V::Fma(c, p, V::Set(0.5f))));
}
// 0.5 x (1 + tanh(u)) = x sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3).
template <typename V>
HEDDLE_SIMD_INLINE typename V::T GeluTanh(typename V::T x) {
  using T = typename V::T;
  const T line = V::Fma(V::Mul(x, x), V::Set(-0.0713548163f), V::Set(-1.59576912f));
  return V::Div(x, V::Add(V::Set(1.f), Exp<V>(V::Mul(x, line))));
}
// x tanh(log(1 + e)) = x (e^2 + 2 e) / (e^2 + 2 e + 2) for e = exp(x); the factor is 1 from x = 9
// on.
template <typename V>
HEDDLE_SIMD_INLINE typename V::T Mish(typename V::T x) {
  using T = typename V::T;
  const T e = Exp<V>(V::Min(V::Set(20.f), x)), n = V::Mul(e, V::Add(e, V::Set(2.f)));
  return V::Mul(x, V::Div(n, V::Add(n, V::Set(2.f))));
}

}  // namespace
}  // namespace heddle::simd
