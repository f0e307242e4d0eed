// Element types of tensors.
#pragma once

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

// Bytes per element; 0 for kUnknown.
constexpr size_t SizeOf(DType t) {
  constexpr size_t kSizes[kNumDTypes] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16, 0};
  return kSizes[static_cast<int>(t)];
}

// NumPy's names: "bool", "uint8", …, "bfloat16", "complex64".
std::string_view Name(DType t);

constexpr bool IsFloat(DType t) {
  return t == DType::kF16 || t == DType::kBF16 || t == DType::kF32 || t == DType::kF64;
}
constexpr bool IsComplex(DType t) { return t == DType::kC64 || t == DType::kC128; }
constexpr bool IsInteger(DType t) { return t <= DType::kI64; }  // bool included

}  // namespace heddle
