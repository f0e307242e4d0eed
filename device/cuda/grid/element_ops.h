// The functions of element-wise operators on one element, behind one entry point: the kernel of an
// operator passes its number as a constant, fused loops read it from their program.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "device/cuda/grid/element.h"

namespace heddle::HEDDLE_GRID {

namespace element_internal {

HEDDLE_BODY inline float Sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }
HEDDLE_BODY inline float Clamp(float x, float low, float high) {  // NaN stays NaN
  return x < low ? low : x > high ? high : x;
}
HEDDLE_BODY inline float Softplus(float x) { return fmaxf(x, 0.0f) + log1pf(expf(-fabsf(x))); }
constexpr float kSqrtHalf = 0.70710678118654752440f, kInvSqrt2Pi = 0.39894228040143267794f;
constexpr float kGeluScale = 2 * kInvSqrt2Pi, kGeluCube = 0.044715f;

HEDDLE_BODY inline float Round(float x) {  // halves away from zero
  const float whole = truncf(x);
  return whole + copysignf(fabsf(x - whole) >= 0.5f ? 1.0f : 0.0f, x);
}
HEDDLE_BODY inline float Mod(float x, float y) {  // the sign of y
  const float r = fmodf(x, y);
  return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

HEDDLE_BODY inline float OfOne(Element op, float x, const ElementArgs& g) {
  switch (op) {
    case Element::kRelu:
      return x > 0 ? x : 0;  // NaN gives 0
    case Element::kSigmoid:
      return Sigmoid(x);
    case Element::kTanh:
      return tanhf(x);
    case Element::kExp:
      return expf(x);
    case Element::kLog:
      return logf(x);
    case Element::kSqrt:
      return sqrtf(x);
    case Element::kRsqrt:
      return 1.0f / sqrtf(x);
    case Element::kAbs:
      return fabsf(x);
    case Element::kSquare:
      return x * x;
    case Element::kReciprocal:
      return 1.0f / x;
    case Element::kErf:
      return erff(x);
    case Element::kGelu:
      return 0.5f * x * (1.0f + erff(x * kSqrtHalf));
    case Element::kGeluTanh:
      return 0.5f * x * (1.0f + tanhf(kGeluScale * (x + kGeluCube * x * x * x)));
    case Element::kScale:
      return x * g.a + g.b;
    case Element::kClip:
      return Clamp(x, g.a, g.b);
    case Element::kHardSwish:
      return x * Clamp(x + g.c, 0, g.a) / g.b;
    case Element::kHardSwishDividedFirst:
      return x * (Clamp(x + g.c, 0, g.a) / g.b);
    case Element::kHardSigmoid:
      return Clamp(x * g.a + g.b, 0, 1);
    case Element::kSwish:
      return x / (1.0f + expf(-g.a * x));
    case Element::kLeakyRelu:
      return x * (x < 0 ? g.b : g.a);
    case Element::kElu:
      return x < 0 ? g.a * (expf(x) - 1.0f) : x;
    case Element::kSoftplus:
      return x * g.a > g.b ? x : Softplus(x * g.a) / g.a;
    case Element::kLogSigmoid:
      return -Softplus(-x);
    case Element::kSoftsign:
      return x / (1.0f + fabsf(x));
    case Element::kMish:
      return x * tanhf(x > g.a ? x : Softplus(x));
    case Element::kPow:
      return powf(x, g.a);
    case Element::kFloor:
      return floorf(x);
    case Element::kCeil:
      return ceilf(x);
    case Element::kRound:
      return Round(x);
    case Element::kSin:
      return sinf(x);
    case Element::kCos:
      return cosf(x);
    case Element::kStanh:
      return g.b * tanhf(g.a * x);
    case Element::kTanhShrink:
      return x - tanhf(x);
    default:
      return 0;
  }
}

HEDDLE_BODY inline float GeluSlope(float x) {
  const float cdf = 0.5f * (1.0f + erff(x * kSqrtHalf));
  return cdf + x * kInvSqrt2Pi * expf(-0.5f * x * x);
}
HEDDLE_BODY inline float GeluTanhSlope(float x) {
  const float t = tanhf(kGeluScale * (x + kGeluCube * x * x * x));
  const float slope = kGeluScale * (1.0f + 3 * kGeluCube * x * x);
  return 0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * slope;
}
HEDDLE_BODY inline float HardSwishSlope(float x, const ElementArgs& g) {
  if (!(x + g.c > 0)) return 0;
  return x + g.c < g.a ? (2.0f * x + g.c) / g.b : 1.0f;
}

// `x` is what the gradient reads, the operator's input or its result; `dy` the result's gradient.
HEDDLE_BODY inline float OfGrad(Element op, float x, float dy, const ElementArgs& g) {
  switch (op) {
    case Element::kReluGrad:
      return x > 0 ? dy : 0;
    case Element::kSigmoidGrad:
      return dy * (x * (1.0f - x));
    case Element::kTanhGrad:
      return dy * (1.0f - x * x);
    case Element::kExpGrad:
      return dy * x;
    case Element::kLogGrad:
      return dy / x;
    case Element::kSqrtGrad:
      return 0.5f * dy / x;
    case Element::kRsqrtGrad:
      return -0.5f * dy * x * x * x;
    case Element::kAbsGrad:
      return dy * static_cast<float>((x > 0) - (x < 0));
    case Element::kSquareGrad:
      return dy * 2.0f * x;
    case Element::kReciprocalGrad:
      return -dy * (x * x);
    case Element::kGeluGrad:
      return dy * GeluSlope(x);
    case Element::kGeluTanhGrad:
      return dy * GeluTanhSlope(x);
    case Element::kClipGrad:
      return x > g.a && x < g.b ? dy : 0;
    case Element::kHardSwishGrad:
      return dy * HardSwishSlope(x, g);
    case Element::kHardSigmoidGrad:
      return x > 0 && x < 1 ? dy * g.a : 0;
    case Element::kSwishGrad: {
      const float s = Sigmoid(g.a * x);
      return dy * s * (1.0f + g.a * x * (1.0f - s));
    }
    case Element::kLeakyReluGrad:
      return dy * (x < 0 ? g.b : g.a);
    case Element::kEluGrad:
      return x > 0 ? dy : dy * g.a * expf(x);
    case Element::kSoftplusGrad:
      return x * g.a > g.b ? dy : dy * Sigmoid(x * g.a);
    case Element::kLogSigmoidGrad:
      return dy * Sigmoid(-x);
    case Element::kSoftsignGrad:
      return dy / ((1.0f + fabsf(x)) * (1.0f + fabsf(x)));
    case Element::kPowGrad:
      return g.a == 0 ? 0 : dy * g.a * powf(x, g.a - 1.0f);
    case Element::kSinGrad:
      return dy * cosf(x);
    case Element::kCosGrad:
      return -dy * sinf(x);
    default:
      return 0;
  }
}

// Integers wrap. The divisor of integers is not 0 (kernels for them do not divide).
template <typename T>
HEDDLE_BODY T OfTwo(Element op, T x, T y) {
  using U = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;
  switch (op) {
    case Element::kAdd:
      return static_cast<T>(static_cast<U>(x) + static_cast<U>(y));
    case Element::kSub:
      return static_cast<T>(static_cast<U>(x) - static_cast<U>(y));
    case Element::kMul:
      return static_cast<T>(static_cast<U>(x) * static_cast<U>(y));
    case Element::kMax:
      return x > y ? x : y;
    case Element::kMin:
      return x < y ? x : y;
    case Element::kMaxKeepsNan:
      return x > y || x != x ? x : y;
    case Element::kMinKeepsNan:
      return x < y || x != x ? x : y;
    default:
      break;
  }
  if constexpr (std::is_same_v<T, float>) {
    switch (op) {
      case Element::kDiv:
        return x / y;
      case Element::kElementPow:
        return powf(x, y);
      case Element::kMod:
        return Mod(x, y);
      case Element::kFloorDiv:
        return floorf(x / y);
      default:
        break;
    }
  }
  return T(0);
}

}  // namespace element_internal

// The number of operands.
HEDDLE_BODY constexpr int Operands(Element op) { return op < Element::kReluGrad ? 1 : 2; }

HEDDLE_BODY inline float Compute(Element op, float x, float y, const ElementArgs& args) {
  if (op < Element::kReluGrad) return element_internal::OfOne(op, x, args);
  if (op < Element::kAdd) return element_internal::OfGrad(op, x, y, args);
  return element_internal::OfTwo<float>(op, x, y);
}

}  // namespace heddle::HEDDLE_GRID
