// 16-bit float storage types with conversion to and from float (round to nearest even).
#pragma once

#include <bit>
#include <cstdint>

#include "heddle/dtype.h"

namespace heddle {

struct bfloat16 {
  uint16_t bits = 0;
  bfloat16() = default;
  explicit bfloat16(float f) {
    const auto u = std::bit_cast<uint32_t>(f);
    if ((u & 0x7fffffffu) > 0x7f800000u) {
      bits = static_cast<uint16_t>((u >> 16) | 0x40u);  // keeps NaN a NaN
    } else {
      bits = static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
    }
  }
  operator float() const {
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }  // NOLINT
};

struct float16 {
  uint16_t bits = 0;
  float16() = default;
  explicit float16(float f);
  operator float() const;  // NOLINT(google-explicit-constructor)
};

inline float16::float16(float f) {
  const auto u = std::bit_cast<uint32_t>(f);
  const uint32_t sign = (u >> 16) & 0x8000u;
  const uint32_t a = u & 0x7fffffffu;
  if (a > 0x7f800000u) {
    bits = static_cast<uint16_t>(sign | 0x7e00u);
  } else if (a >= 0x477ff000u) {  // rounds to infinity
    bits = static_cast<uint16_t>(sign | 0x7c00u);
  } else if (a < 0x38800000u) {  // subnormal half: adding 0.5f aligns and rounds the mantissa
    const float shifted = std::bit_cast<float>(a) + 0.5f;
    bits = static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
  } else {
    bits = static_cast<uint16_t>(sign | ((a - 0x38000000u + 0xfffu + ((a >> 13) & 1u)) >> 13));
  }
}

inline float16::operator float() const {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1fu;
  const uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent != 0)
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  const float value = static_cast<float>(mantissa) * 5.9604644775390625e-8f;  // 2^-24
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) | sign);
}

template <>
inline constexpr DType kDTypeOf<bfloat16> = DType::kBF16;
template <>
inline constexpr DType kDTypeOf<float16> = DType::kF16;

}  // namespace heddle
