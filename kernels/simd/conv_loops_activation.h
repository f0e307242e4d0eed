// Activations of a vector, for the inner loops of convolutions. See conv_loops_table.h.
#pragma once

#include "kernels/simd/conv_loops.h"

namespace heddle::convloops {
namespace {

#define HEDDLE_INLINE inline __attribute__((always_inline))

// 2^f for the rest f of a multiple of log2(e): a least-maximum fit of degree 5, 1 at 0. Off by at
// most 1.5e-7 of the value for |x| < 10, 1.5e-6 anywhere.
template <typename V>
HEDDLE_INLINE typename V::T Exp(typename V::T x) {
  using T = typename V::T;
  const T c = V::Min(V::Set(100.f), V::Max(V::Set(-110.f), x));  // NaN stays
  const T turn = V::Set(1.44269504088896341f);
  const T n = V::Round(V::Mul(c, turn));
  const T f = V::Fms(c, turn, n);
  T p = V::Fma(f, V::Set(0.00132694072f), V::Set(0.00967129413f));
  p = V::Fma(p, f, V::Set(0.0555071123f));
  p = V::Fma(p, f, V::Set(0.240222469f));
  p = V::Fma(p, f, V::Set(0.693147004f));
  return V::TimesPowerOf2(V::Fma(p, f, V::Set(1.f)), n);
}

template <typename V>
HEDDLE_INLINE typename V::T Swish(typename V::T x, float alpha) {
  return V::Div(x, V::Add(V::Set(1.f), Exp<V>(V::Mul(V::Set(-alpha), x))));
}
template <typename V>
HEDDLE_INLINE typename V::T Sigmoid(typename V::T x) {
  return V::Div(V::Set(1.f), V::Add(V::Set(1.f), Exp<V>(V::Sub(V::Zero(), x))));
}
// As fast_math.h has it.
template <typename V>
HEDDLE_INLINE typename V::T Tanh(typename V::T x) {
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
// 0.5 x (1 + erf(x / sqrt(2))); erf as fast_math.h has it.
template <typename V>
HEDDLE_INLINE typename V::T GeluErf(typename V::T x) {
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
HEDDLE_INLINE typename V::T GeluTanh(typename V::T x) {
  using T = typename V::T;
  const T line = V::Fma(V::Mul(x, x), V::Set(-0.0713548163f), V::Set(-1.59576912f));
  return V::Div(x, V::Add(V::Set(1.f), Exp<V>(V::Mul(x, line))));
}

// tanh(log(1 + e)) = (e^2 + 2 e) / (e^2 + 2 e + 2) for e = exp(x), which is 1 from some 9 on.
template <typename V>
HEDDLE_INLINE typename V::T Mish(typename V::T x) {
  using T = typename V::T;
  const T e = Exp<V>(V::Min(V::Set(20.f), x)), n = V::Mul(e, V::Add(e, V::Set(2.f)));
  return V::Mul(x, V::Div(n, V::Add(n, V::Set(2.f))));
}

template <typename V, Activation kActivation>
HEDDLE_INLINE typename V::T Activate(typename V::T x, const Epilogue& e) {
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
  if constexpr (kActivation == Activation::kMish) return Mish<V>(x);
  if constexpr (kActivation == Activation::kGeluErf) return GeluErf<V>(x);
  if constexpr (kActivation == Activation::kGeluTanh) return GeluTanh<V>(x);
  return x;
}

// The same between sums that fill the registers; what is long becomes a call.
template <typename V, Activation kActivation>
__attribute__((noinline)) typename V::T ActivateByCall(typename V::T x, const Epilogue& e) {
  return Activate<V, kActivation>(x, e);
}
template <typename V, Activation kActivation>
HEDDLE_INLINE typename V::T ActivateSum(typename V::T x, const Epilogue& e) {
  if constexpr (kActivation == Activation::kSwish || kActivation == Activation::kSigmoid ||
                kActivation == Activation::kTanh || kActivation == Activation::kMish)
    return ActivateByCall<V, kActivation>(x, e);
  return Activate<V, kActivation>(x, e);
}

template <typename V>
struct ActivateLoops {
  using T = typename V::T;
  template <Activation kActivation>
  static HEDDLE_INLINE void Rows(const Epilogue& epilogue, int64_t rows, int64_t width,
                                 int64_t step, float* data) {
    const Epilogue e = epilogue;
    const T scale = V::Set(e.scale), shift = V::Set(e.shift);
    const bool linear = e.scale != 1.f || e.shift != 0.f;
    const auto one = [&](T x) __attribute__((always_inline)) {
      const T y = Activate<V, kActivation>(x, e);
      return linear ? V::Fma(scale, y, shift) : y;
    };
    for (int64_t r = 0; r < rows; ++r, data += step) {
      int64_t i = 0;
      for (; i + V::kLanes <= width; i += V::kLanes) V::Store(data + i, one(V::Load(data + i)));
      if (const int left = static_cast<int>(width - i); left > 0)
        V::StoreSome(data + i, one(V::LoadSome(data + i, left)), left);
    }
  }
  // See ConvLoops::exp_sum.
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
  // See ConvLoops::activate.
  static void Run(const Epilogue& e, int64_t rows, int64_t width, int64_t step, float* data) {
    switch (e.activation) {
      case Activation::kNone:
        return Rows<Activation::kNone>(e, rows, width, step, data);
      case Activation::kRelu:
        return Rows<Activation::kRelu>(e, rows, width, step, data);
      case Activation::kLeakyRelu:
        return Rows<Activation::kLeakyRelu>(e, rows, width, step, data);
      case Activation::kClip:
        return Rows<Activation::kClip>(e, rows, width, step, data);
      case Activation::kHardSwish:
        return Rows<Activation::kHardSwish>(e, rows, width, step, data);
      case Activation::kHardSigmoid:
        return Rows<Activation::kHardSigmoid>(e, rows, width, step, data);
      case Activation::kSwish:
        return Rows<Activation::kSwish>(e, rows, width, step, data);
      case Activation::kSigmoid:
        return Rows<Activation::kSigmoid>(e, rows, width, step, data);
      case Activation::kGeluErf:
        return Rows<Activation::kGeluErf>(e, rows, width, step, data);
      case Activation::kGeluTanh:
        return Rows<Activation::kGeluTanh>(e, rows, width, step, data);
      case Activation::kTanh:
        return Rows<Activation::kTanh>(e, rows, width, step, data);
      case Activation::kMish:
        return Rows<Activation::kMish>(e, rows, width, step, data);
    }
  }
};

#undef HEDDLE_INLINE

}  // namespace
}  // namespace heddle::convloops
