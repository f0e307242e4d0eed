// Elementary functions of a vector, for the microkernels. fast_math.h has those for plain loops,
// which are more exact where that costs an operator nothing.
#pragma once

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

constexpr float kLog2OfE = 1.44269504088896341f;

// e^x = 2^n 2^f for the whole number n next to log2(e) x and the rest f. Off by at most 1.5e-7 of
// the value for |x| < 10, 1.5e-6 anywhere.
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
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23
  const T log2 = V::Set(kLog2OfE), least = V::Set(-87.3f), round = V::Set(kRound);
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
// As fast_math.h has it.
template <typename V>
HEDDLE_SIMD_INLINE typename V::T Tanh(typename V::T x) {
  using T = typename V::T;
  const T c = V::Min(V::Set(8.13091373f), V::Max(V::Set(-8.13091373f), x));  // NaN stays
  const T z = V::Mul(c, c);
  T p = V::Fma(z, V::Set(1.50345304e-8f), V::Set(2.17659423e-5f));
  p = V::Fma(p, z, V::Set(0.00356415912f));
  p = V::Fma(p, z, V::Set(0.134383291f));
  p = V::Fma(p, z, V::Set(1.f));
  T q = V::Fma(z, V::Set(8.44635237e-7f), V::Set(3.39888274e-4f));
  q = V::Fma(q, z, V::Set(0.0261364494f));
  q = V::Fma(q, z, V::Set(0.467716556f));
  q = V::Fma(q, z, V::Set(1.f));
  return V::Div(V::Mul(c, p), q);
}
// The sigmoid in fewer steps than Sigmoid, off by up to 2e-7 whatever the value: for gates, which
// other values are multiplied with.
template <typename V>
HEDDLE_SIMD_INLINE typename V::T Gate(typename V::T x) {
  const typename V::T half = V::Set(0.5f);
  return V::Fma(half, Tanh<V>(V::Mul(half, x)), half);
}
// 0.5 x (1 + erf(x / sqrt(2))); erf as fast_math.h has it.
template <typename V>
HEDDLE_SIMD_INLINE typename V::T GeluErf(typename V::T x) {
  using T = typename V::T;
  const T c =
      V::Min(V::Set(3.92f), V::Max(V::Set(-3.92f), V::Mul(x, V::Set(0.70710678118654752f))));
  const T z = V::Mul(c, c);
  T p = V::Fma(z, V::Set(2.05008986e-6f), V::Set(2.84883125e-4f));
  p = V::Fma(p, z, V::Set(3.76562334e-3f));
  p = V::Fma(p, z, V::Set(0.0527487444f));
  p = V::Fma(p, z, V::Set(0.190406581f));
  p = V::Fma(p, z, V::Set(1.12837915f));
  T q = V::Fma(z, V::Set(3.80917625e-5f), V::Set(1.16253752e-3f));
  q = V::Fma(q, z, V::Set(0.0149692295f));
  q = V::Fma(q, z, V::Set(0.114109164f));
  q = V::Fma(q, z, V::Set(0.502076179f));
  q = V::Fma(q, z, V::Set(1.f));
  const T erf = V::Min(V::Set(1.f), V::Max(V::Set(-1.f), V::Div(V::Mul(c, p), q)));
  const T half = V::Mul(V::Set(0.5f), x);
  return V::Fma(half, erf, half);
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
