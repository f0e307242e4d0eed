// Activations: of one vector, inside of other tiles, and of rows of floats; and the exponential
// with a sum, which softmax is made of.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "kernels/simd/epilogue.h"
#include "kernels/simd/vector_math.h"

namespace heddle::simd {
namespace {

template <typename V, Activation kActivation>
HEDDLE_SIMD_INLINE typename V::T Activate(typename V::T x, const Epilogue& e) {
  using T = typename V::T;
  // Max returns its second operand if one of them is NaN, so their order decides whether NaN stays.
  if constexpr (kActivation == Activation::kRelu) return V::Max(x, V::Zero());
  if constexpr (kActivation == Activation::kReluKeepsNan) return V::Max(V::Zero(), x);
  if constexpr (kActivation == Activation::kLeakyRelu)
    return V::Fma(V::Set(e.alpha), V::Min(V::Zero(), x), V::Max(V::Zero(), x));
  if constexpr (kActivation == Activation::kClip)
    return V::Min(V::Set(e.beta), V::Max(V::Set(e.alpha), x));
  if constexpr (kActivation == Activation::kHardSwish || kActivation == Activation::kHardSigmoid) {
    const T line = V::Fma(V::Set(e.alpha), x, V::Set(e.beta));
    const bool swish = kActivation == Activation::kHardSwish;
    const T gate = V::Min(V::Set(swish ? e.limit : 1.f), V::Max(V::Zero(), line));
    return swish ? V::Mul(x, gate) : gate;
  }
  if constexpr (kActivation == Activation::kSwish) return Swish<V>(x, e.alpha);
  if constexpr (kActivation == Activation::kSigmoid) return Sigmoid<V>(x);
  if constexpr (kActivation == Activation::kTanh) return Tanh<V>(x);
  if constexpr (kActivation == Activation::kMish) return Mish<V>(x);
  if constexpr (kActivation == Activation::kGeluErf) return GeluErf<V>(x);
  if constexpr (kActivation == Activation::kGeluTanh) return GeluTanh<V>(x);
  return x;
}

// The same where sums fill the registers: a long activation becomes a call.
template <typename V, Activation kActivation>
__attribute__((noinline)) typename V::T ActivateByCall(typename V::T x, const Epilogue& e) {
  return Activate<V, kActivation>(x, e);
}
template <typename V, Activation kActivation>
HEDDLE_SIMD_INLINE typename V::T ActivateSum(typename V::T x, const Epilogue& e) {
  if constexpr (kActivation == Activation::kSwish || kActivation == Activation::kSigmoid ||
                kActivation == Activation::kTanh || kActivation == Activation::kMish)
    return ActivateByCall<V, kActivation>(x, e);
  return Activate<V, kActivation>(x, e);
}
// The same for results that are rounded to bfloat16 or to 8 bits.
template <typename V, Activation kActivation>
HEDDLE_SIMD_INLINE typename V::T ActivateNear(typename V::T x, const Epilogue& e) {
  if constexpr (kActivation == Activation::kGeluErf) return GeluErfNear<V>(x);
  return ActivateSum<V, kActivation>(x, e);
}

template <typename V>
struct ActivationLoops {
  using T = typename V::T;
  template <Activation kActivation>
  static HEDDLE_SIMD_INLINE void Rows(const Epilogue& epilogue, int64_t rows, int64_t width,
                                      int64_t step, const float* from, float* data) {
    const Epilogue e = epilogue;
    const T scale = V::Set(e.scale), shift = V::Set(e.shift);
    const bool linear = e.scale != 1.f || e.shift != 0.f;
    const auto one = [&](T x) __attribute__((always_inline)) {
      const T y = Activate<V, kActivation>(x, e);
      return linear ? V::Fma(scale, y, shift) : y;
    };
    for (int64_t r = 0; r < rows; ++r, from += step, data += step) {
      int64_t i = 0;
      for (; i + V::kLanes <= width; i += V::kLanes) V::Store(data + i, one(V::Load(from + i)));
      if (const int left = static_cast<int>(width - i); left > 0)
        V::StoreSome(data + i, one(V::LoadSome(from + i, left)), left);
    }
  }
  // See Microkernels::exp_sum.
  static float ExpSum(const float* x, int64_t n, float top, float* y) {
    const T from = V::Set(top);
    T sums = V::Zero();
    int64_t i = 0;
    for (; i + V::kLanes <= n; i += V::kLanes) {
      const T e = Exp<V>(V::Sub(V::Load(x + i), from));
      V::Store(y + i, e);
      sums = V::Add(sums, e);
    }
    float lanes[V::kLanes], sum = 0;
    V::Store(lanes, sums);
    if (const int left = static_cast<int>(n - i); left > 0) {
      const T e = Exp<V>(V::Sub(V::LoadSome(x + i, left), from));
      V::StoreSome(y + i, e, left);
      float rest[V::kLanes];
      V::Store(rest, e);
      for (int k = 0; k < left; ++k) lanes[k] += rest[k];
    }
    for (float lane : lanes) sum += lane;
    return sum;
  }
  // See Microkernels::is_finite. Zero times an infinity or NaN is NaN, which stays in sums.
  static bool IsFinite(const float* x, int64_t rows, int64_t width, int64_t step) {
    const T zero = V::Zero();
    T sums = zero, more = zero;
    for (int64_t r = 0; r < rows; ++r, x += step) {
      int64_t i = 0;
      for (; i + 2 * V::kLanes <= width; i += 2 * V::kLanes) {
        sums = V::Fma(zero, V::Load(x + i), sums);
        more = V::Fma(zero, V::Load(x + i + V::kLanes), more);
      }
      for (; i < width; i += V::kLanes) {
        const auto left = static_cast<int>(std::min<int64_t>(V::kLanes, width - i));
        sums = V::Fma(zero, V::LoadSome(x + i, left), sums);
        std::swap(sums, more);
      }
    }
    float lanes[V::kLanes], all = 0;
    V::Store(lanes, V::Add(sums, more));
    for (const float lane : lanes) all += lane;
    return all == 0;
  }
  // See Microkernels::activate.
  static void Run(const Epilogue& e, int64_t rows, int64_t width, int64_t step, const float* from,
                  float* data) {
    switch (e.activation) {
      case Activation::kNone:
        return Rows<Activation::kNone>(e, rows, width, step, from, data);
      case Activation::kRelu:
        return Rows<Activation::kRelu>(e, rows, width, step, from, data);
      case Activation::kLeakyRelu:
        return Rows<Activation::kLeakyRelu>(e, rows, width, step, from, data);
      case Activation::kClip:
        return Rows<Activation::kClip>(e, rows, width, step, from, data);
      case Activation::kHardSwish:
        return Rows<Activation::kHardSwish>(e, rows, width, step, from, data);
      case Activation::kHardSigmoid:
        return Rows<Activation::kHardSigmoid>(e, rows, width, step, from, data);
      case Activation::kSwish:
        return Rows<Activation::kSwish>(e, rows, width, step, from, data);
      case Activation::kSigmoid:
        return Rows<Activation::kSigmoid>(e, rows, width, step, from, data);
      case Activation::kGeluErf:
        return Rows<Activation::kGeluErf>(e, rows, width, step, from, data);
      case Activation::kGeluTanh:
        return Rows<Activation::kGeluTanh>(e, rows, width, step, from, data);
      case Activation::kTanh:
        return Rows<Activation::kTanh>(e, rows, width, step, from, data);
      case Activation::kMish:
        return Rows<Activation::kMish>(e, rows, width, step, from, data);
      case Activation::kReluKeepsNan:
        return Rows<Activation::kReluKeepsNan>(e, rows, width, step, from, data);
    }
  }
};

}  // namespace
}  // namespace heddle::simd
