// The loops of byte_steps.h, for a vector B. No function here has external linkage
// (microkernel_table.h says why). Sources that include this are compiled without contraction of
// products and sums.
#pragma once

#include <cstdint>

#include "kernels/simd/integers/byte_steps.h"

namespace heddle::simd {
namespace {

// Plain loops, which are also the ends of the others.
inline uint8_t RoundedByte(float x, const ByteSteps& s) {
  const float least = s.is_signed ? -128.f : 0.f, most = s.is_signed ? 127.f : 255.f;
  const float y = __builtin_nearbyintf(x / s.scale) + static_cast<float>(s.zero);
  const float high = y < most ? y : most;
  const auto whole = static_cast<int32_t>(high > least ? high : least);
  return static_cast<uint8_t>(y == y ? whole : 0);
}
inline float RealOf(uint8_t byte, const ByteSteps& s) {
  const int32_t q = s.is_signed ? int32_t{static_cast<int8_t>(byte)} : int32_t{byte};
  return static_cast<float>(q - s.zero) * s.scale;
}
inline void PlainRound(const float* x, int64_t n, const ByteSteps& steps, uint8_t* to) {
  for (int64_t i = 0; i < n; ++i) to[i] = RoundedByte(x[i], steps);
}
inline void PlainCombine(const BytePair& p, const uint8_t* x, const uint8_t* y, int64_t n,
                         uint8_t* to) {
  for (int64_t i = 0; i < n; ++i) {
    const float u = RealOf(x[p.one_x ? 0 : i], p.x), v = RealOf(y[p.one_y ? 0 : i], p.y);
    float w = p.sum ? u + v : u * v;
    w = w < p.least ? p.least : w;
    w = w > p.most ? p.most : w;
    to[i] = RoundedByte(w, p.out);
  }
}

template <typename B>
struct ByteStepLoops {
  using T = typename B::T;
  static constexpr int kLanes = B::kLanes;

  // Products with the reciprocal differ from quotients by less than 1e-4 where the quotient is less
  // than kFar, beyond which all bytes are at an end of their range: the nearest integers differ
  // only near the middle between two.
  static constexpr float kFar = 600, kNearMiddle = 0.4998f;
  // The reciprocal is a normal number.
  static bool HasReciprocal(float scale) {
    const float size = scale < 0 ? -scale : scale;
    return size > 1e-35f && size < 1e35f;
  }
  struct Quotient {
    T scale, reciprocal;
    explicit Quotient(float s) : scale(B::Set(s)), reciprocal(B::Set(1 / s)) {}
    // NaN gives any integer.
    typename B::I Nearest(T w) const {
      const T far = B::Set(kFar);
      const T q = B::Limit(B::Mul(w, reciprocal), far);
      const auto whole = B::Whole(q);
      if (!B::AnyFarther(B::Sub(q, B::Float(whole)), B::Set(kNearMiddle))) return whole;
      return B::Whole(B::Limit(B::Div(w, scale), far));
    }
  };

  template <bool kSigned>
  static void RoundAs(const float* x, int64_t n, const ByteSteps& s, uint8_t* to) {
    const Quotient by(s.scale);
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      const T v = B::Load(x + i);
      B::template Store<kSigned>(to + i, B::ZeroIfNan(B::AddInt(by.Nearest(v), s.zero), v));
    }
    PlainRound(x + i, n - i, s, to + i);
  }
  static void Round(const float* x, int64_t n, const ByteSteps& s, uint8_t* to) {
    if (!HasReciprocal(s.scale)) return PlainRound(x, n, s, to);
    s.is_signed ? RoundAs<true>(x, n, s, to) : RoundAs<false>(x, n, s, to);
  }

  struct Operand {
    T scale, zero, one;
    bool is_signed, single;
    Operand(const ByteSteps& s, const uint8_t* p, bool is_single)
        : scale(B::Set(s.scale)),
          zero(B::Set(static_cast<float>(s.zero))),
          is_signed(s.is_signed),
          single(is_single) {
      one = B::Set(is_single ? RealOf(*p, s) : 0.f);
    }
    T At(const uint8_t* p) const {
      if (single) return one;
      const T q = is_signed ? B::Signed(p) : B::Unsigned(p);
      return B::Mul(B::Sub(q, zero), scale);
    }
  };
  template <bool kSigned, bool kSum>
  static void CombineAs(const BytePair& p, const uint8_t* x, const uint8_t* y, int64_t n,
                        uint8_t* to) {
    const Quotient by(p.out.scale);
    const Operand left(p.x, x, p.one_x), right(p.y, y, p.one_y);
    const T least = B::Set(p.least), most = B::Set(p.most);
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      const T u = left.At(x + i), v = right.At(y + i);
      const T w = B::Min(B::Max(kSum ? B::Add(u, v) : B::Mul(u, v), least), most);
      B::template Store<kSigned>(to + i, B::AddInt(by.Nearest(w), p.out.zero));
    }
    PlainCombine(p, p.one_x ? x : x + i, p.one_y ? y : y + i, n - i, to + i);
  }
  static void Combine(const BytePair& p, const uint8_t* x, const uint8_t* y, int64_t n,
                      uint8_t* to) {
    if (!HasReciprocal(p.out.scale)) return PlainCombine(p, x, y, n, to);
    if (p.out.is_signed)
      p.sum ? CombineAs<true, true>(p, x, y, n, to) : CombineAs<true, false>(p, x, y, n, to);
    else
      p.sum ? CombineAs<false, true>(p, x, y, n, to) : CombineAs<false, false>(p, x, y, n, to);
  }

  static constexpr ByteStepKernels kTable{Round, Combine};
};

}  // namespace
}  // namespace heddle::simd
