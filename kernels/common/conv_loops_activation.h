// Activations of a vector, for the inner loops of convolutions. See conv_loops_table.h.
#pragma once

#include "kernels/common/conv_loops.h"

namespace heddle::convloops {
namespace {

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
  return x;
}

}  // namespace
}  // namespace heddle::convloops
