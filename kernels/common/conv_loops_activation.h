// Activations of a vector, for the inner loops of convolutions. See conv_loops_table.h.
#pragma once

#include "kernels/common/conv_loops.h"

namespace heddle::convloops {
namespace {

// As fast_math.h has it, with the same polynomials.
template <typename V>
inline __attribute__((always_inline)) typename V::T Exp(typename V::T x) {
  using T = typename V::T;
  const T c = V::Min(V::Set(100.f), V::Max(V::Set(-110.f), x));  // NaN stays
  const T n = V::Round(V::Mul(c, V::Set(1.44269504088896341f)));
  T r = V::Fma(n, V::Set(-0.693359375f), c);
  r = V::Fma(n, V::Set(2.12194440e-4f), r);
  T p = V::Fma(r, V::Set(0.0013814560f), V::Set(0.0083687352f));
  p = V::Fma(p, r, V::Set(0.041668389f));
  p = V::Fma(p, r, V::Set(0.16666521f));
  p = V::Fma(p, r, V::Set(0.49999994f));
  return V::TimesPowerOf2(V::Add(V::Fma(V::Mul(r, r), p, r), V::Set(1.f)), n);
}

// Calls, unlike the rest: their code is long.
template <typename V>
__attribute__((noinline)) typename V::T Swish(typename V::T x, float alpha) {
  return V::Div(x, V::Add(V::Set(1.f), Exp<V>(V::Mul(V::Set(-alpha), x))));
}
template <typename V>
__attribute__((noinline)) typename V::T Sigmoid(typename V::T x) {
  return V::Div(V::Set(1.f), V::Add(V::Set(1.f), Exp<V>(V::Sub(V::Zero(), x))));
}
template <typename V>
__attribute__((noinline)) typename V::T Tanh(typename V::T x) {
  using T = typename V::T;
  const T a = V::Max(x, V::Sub(V::Zero(), x));
  const T one = V::Set(1.f), two = V::Set(2.f);
  const T large = V::Sub(one, V::Div(two, V::Add(Exp<V>(V::Mul(two, a)), one)));
  const T z = V::Mul(x, x);
  T p = V::Fma(z, V::Set(-5.7049873e-3f), V::Set(0.020639088f));
  p = V::Fma(p, z, V::Set(-0.053739715f));
  p = V::Fma(p, z, V::Set(0.13331442f));
  p = V::Fma(p, z, V::Set(-0.33333281f));
  const T small = V::Fma(V::Mul(x, z), p, x);
  return V::Below(a, V::Set(0.625f), small, V::Below(x, V::Zero(), V::Sub(V::Zero(), large), large));
}

template <typename V, Activation kActivation>
inline __attribute__((always_inline)) typename V::T Activate(typename V::T x, const Epilogue& e) {
  using T = typename V::T;
  if constexpr (kActivation == Activation::kRelu) return V::Max(V::Zero(), x);
  if constexpr (kActivation == Activation::kLeakyRelu)
    return V::Fma(V::Set(e.alpha), V::Min(V::Zero(), x), V::Max(V::Zero(), x));
  if constexpr (kActivation == Activation::kClip)
    return V::Min(V::Set(e.beta), V::Max(V::Set(e.alpha), x));
  if constexpr (kActivation == Activation::kHardSwish || kActivation == Activation::kHardSigmoid) {
    const T line = V::Fma(V::Set(e.alpha), x, V::Set(e.beta));
    const T gate = V::Min(V::Set(1.f), V::Max(V::Zero(), line));
    return kActivation == Activation::kHardSwish ? V::Mul(x, gate) : gate;
  }
  if constexpr (kActivation == Activation::kSwish) return Swish<V>(x, e.alpha);
  if constexpr (kActivation == Activation::kSigmoid) return Sigmoid<V>(x);
  if constexpr (kActivation == Activation::kTanh) return Tanh<V>(x);
  return x;
}

}  // namespace
}  // namespace heddle::convloops
