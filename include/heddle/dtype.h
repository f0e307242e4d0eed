// Element types of tensors.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace heddle {

enum class DType : uint8_t {
  kBool,
  kU8,
  kI8,
  kI16,
  kI32,
  kI64,
  kF16,
  kBF16,
  kF32,
  kF64,
  kC64,
  kC128,
  kUnknown,
};
inline constexpr int kNumDTypes = static_cast<int>(DType::kUnknown) + 1;

// Bytes of an element; 0 for kUnknown.
constexpr size_t SizeOf(DType t) {
  constexpr size_t kSizes[kNumDTypes] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16, 0};
  return kSizes[static_cast<int>(t)];
}

// The name in NumPy: "bool", "uint8", …, "bfloat16", "complex64".
std::string_view Name(DType t);

constexpr bool IsFloat(DType t) {
  return t == DType::kF16 || t == DType::kBF16 || t == DType::kF32 || t == DType::kF64;
}
constexpr bool IsComplex(DType t) { return t == DType::kC64 || t == DType::kC128; }
constexpr bool IsInteger(DType t) { return t <= DType::kI64; }  // including bool

// The DType of a C++ type; kUnknown: there is none.
template <typename T>
inline constexpr DType kDTypeOf = DType::kUnknown;
template <>
inline constexpr DType kDTypeOf<bool> = DType::kBool;
template <>
inline constexpr DType kDTypeOf<uint8_t> = DType::kU8;
template <>
inline constexpr DType kDTypeOf<int8_t> = DType::kI8;
template <>
inline constexpr DType kDTypeOf<int16_t> = DType::kI16;
template <>
inline constexpr DType kDTypeOf<int32_t> = DType::kI32;
template <>
inline constexpr DType kDTypeOf<int64_t> = DType::kI64;
template <>
inline constexpr DType kDTypeOf<float> = DType::kF32;
template <>
inline constexpr DType kDTypeOf<double> = DType::kF64;
template <>
inline constexpr DType kDTypeOf<std::complex<float>> = DType::kC64;
template <>
inline constexpr DType kDTypeOf<std::complex<double>> = DType::kC128;

}  // namespace heddle
