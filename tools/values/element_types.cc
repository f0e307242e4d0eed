#include "tools/values/element_types.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "heddle/string_tensor.h"
#include "tools/values/values.h"

namespace heddle::tools {
namespace {

using TypeKind = ElementType::Kind;

constexpr ElementType kElementTypes[] = {
    {"uint16", TypeKind::kWide, DType::kI32, 16},
    {"uint32", TypeKind::kWide, DType::kI64, 32},
    {"uint64", TypeKind::kWide, DType::kI64, 64},
    {"uint4", TypeKind::kSmall, DType::kU8, 4},
    {"int4", TypeKind::kSmall, DType::kI8, 4},
    {"uint2", TypeKind::kSmall, DType::kU8, 2},
    {"int2", TypeKind::kSmall, DType::kI8, 2},
    {"float8e4m3fn", TypeKind::kFloat, DType::kU8, 8, 4},
    {"float8e4m3fnuz", TypeKind::kFloat, DType::kU8, 8, 4},
    {"float8e5m2", TypeKind::kFloat, DType::kU8, 8, 5},
    {"float8e5m2fnuz", TypeKind::kFloat, DType::kU8, 8, 5},
    {"float8e8m0", TypeKind::kFloat, DType::kU8, 8, 8},
    {"float4e2m1", TypeKind::kFloat, DType::kU8, 4, 2},
};

Status OtherType(const NpyArray& array, DType dtype, std::string_view type, const std::string& file,
                 const std::string& what) {
  return Status(StatusCode::kInvalidArgument,
                file + ": holds " + array.type + ", " + what + " takes " + TypeText(dtype, type));
}

Status NotHeld(const std::string& number, DType dtype, std::string_view type,
               const std::string& file, const std::string& what) {
  return Status(StatusCode::kInvalidArgument, file + ": holds " + number + ", which " + what +
                                                  " (" + TypeText(dtype, type) + ") cannot hold");
}

Status NoMemory(const std::string& file) {
  return Status(StatusCode::kResourceExhausted, file + ": out of memory");
}

// The bits of an unsigned number as it was read, as a tensor of a wider signed dtype.
template <typename From, typename To>
Result<Value> Widen(const Tensor& read, DType dtype, const std::string& file) {
  Tensor made = Tensor::Empty(dtype, read.shape());
  if (!made.initialized()) return NoMemory(file);
  for (int64_t i = 0; i < read.numel(); ++i)
    static_cast<To*>(made.mutable_raw())[i] = static_cast<const From*>(read.raw())[i];
  return Value(std::move(made));
}

// An array of uint16, uint32 or uint64 for an input that the file of the program does not call so.
Result<Value> UnsignedFor(const NpyArray& array, DType dtype, const std::string& file,
                          const std::string& what) {
  const Tensor& read = array.value.tensor();
  const bool is16 = array.type == "uint16", is32 = array.type == "uint32";
  if (is16 && dtype == DType::kI32) return Widen<uint16_t, int32_t>(read, dtype, file);
  if (is32 && dtype == DType::kI64) return Widen<uint32_t, int64_t>(read, dtype, file);
  if (dtype == DType::kUnknown || dtype == read.dtype()) {
    // The same bits, where the highest is not set: bfloat16 is known by its bits alone.
    for (int64_t i = 0; !is16 && i < read.numel(); ++i) {
      const bool high = is32 ? read.data<int32_t>()[i] < 0 : read.data<int64_t>()[i] < 0;
      if (!high) continue;
      const std::string number =
          is32 ? std::to_string(static_cast<uint32_t>(read.data<int32_t>()[i]))
               : std::to_string(static_cast<uint64_t>(read.data<int64_t>()[i]));
      return NotHeld(number + " as " + array.type, read.dtype(), "", file, what);
    }
    return Value(read);
  }
  return OtherType(array, dtype, "", file, what);
}

Result<Value> WideFor(const NpyArray& array, const ElementType& want, const std::string& file,
                      const std::string& what) {
  const Tensor& read = array.value.tensor();
  if (array.type == want.name) {
    if (want.bits == 16) return Widen<uint16_t, int32_t>(read, want.held, file);
    if (want.bits == 32) return Widen<uint32_t, int64_t>(read, want.held, file);
    return Value(read);
  }
  // As heddle holds it.
  if (array.type != Name(want.held)) return OtherType(array, want.held, want.name, file, what);
  for (int64_t i = 0; i < read.numel(); ++i) {
    const int64_t x = want.held == DType::kI32 ? read.data<int32_t>()[i] : read.data<int64_t>()[i];
    if (x < 0 || (want.bits < 64 && x >> want.bits != 0))
      return NotHeld(std::to_string(x), want.held, want.name, file, what);
  }
  return Value(read);
}

Result<Value> SmallFor(const NpyArray& array, const ElementType& want, const std::string& file,
                       const std::string& what) {
  const bool is_signed = want.held == DType::kI8, unknown = array.type == "void1";
  const bool signed_read = array.type == "int8";
  if (!unknown && !signed_read && array.type != "uint8")
    return OtherType(array, want.held, want.name, file, what);
  // An element of a type that NumPy does not know is in the lower bits of its byte.
  const Tensor& read = array.value.tensor();
  Tensor made = Tensor::Empty(want.held, read.shape());
  if (!made.initialized()) return NoMemory(file);
  const auto* bytes = static_cast<const uint8_t*>(read.raw());
  auto* to = static_cast<uint8_t*>(made.mutable_raw());
  const int unused = 8 - want.bits;
  for (int64_t i = 0; i < made.numel(); ++i) {
    const auto low = static_cast<uint8_t>(bytes[i] << unused);
    const auto cut = is_signed ? static_cast<uint8_t>(static_cast<int8_t>(low) >> unused)
                               : static_cast<uint8_t>(low >> unused);
    const int number = signed_read ? static_cast<int8_t>(bytes[i]) : bytes[i];
    const int held = is_signed ? static_cast<int8_t>(cut) : cut;
    if (!unknown && held != number)
      return NotHeld(std::to_string(number), want.held, want.name, file, what);
    to[i] = cut;
  }
  return Value(std::move(made));
}

}  // namespace

const ElementType* FindElementType(std::string_view name) {
  for (const ElementType& type : kElementTypes)
    if (type.name == name) return &type;
  return nullptr;
}

double FloatOf(const ElementType& type, uint8_t bits) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  if (type.exponent_bits == 8) return bits == 0xff ? kNan : std::ldexp(1.0, bits - 127);
  const bool unsigned_zero = type.name.ends_with("fnuz");
  if (unsigned_zero && bits == 0x80) return kNan;
  const int fraction_bits = type.bits - 1 - type.exponent_bits;
  const int fraction = bits & ((1 << fraction_bits) - 1);
  const int exponent = bits >> fraction_bits & ((1 << type.exponent_bits) - 1);
  const double sign = bits >> (type.bits - 1) & 1 ? -1.0 : 1.0;
  const int most = (1 << type.exponent_bits) - 1;
  if (type.name == "float8e5m2" && exponent == most)
    return fraction == 0 ? sign * std::numeric_limits<double>::infinity() : kNan;
  if (type.name == "float8e4m3fn" && (bits & 0x7f) == 0x7f) return kNan;
  const int bias = most / 2 + (unsigned_zero ? 1 : 0);
  const int whole = exponent == 0 ? fraction : fraction | 1 << fraction_bits;
  return sign * std::ldexp(whole, std::max(exponent, 1) - bias - fraction_bits);
}

Result<Value> FeedValue(const NpyArray& array, DType dtype, std::string_view type,
                        const std::string& file, const std::string& what) {
  const bool texts = !array.value.is_tensor();
  const bool any = type.empty() && dtype == DType::kUnknown;
  if (texts || type == "string") {
    if (texts && (any || type == "string")) return array.value;
    return OtherType(array, dtype, type, file, what);
  }
  if (const ElementType* want = FindElementType(type)) {
    if (want->kind == TypeKind::kWide) return WideFor(array, *want, file, what);
    if (want->kind == TypeKind::kSmall) return SmallFor(array, *want, file, what);
    const bool bits = array.type == "void1" || array.type == "uint8" ||
                      (array.type == "float8" && want->name == "float8e5m2");
    return bits ? Result<Value>(array.value) : OtherType(array, dtype, type, file, what);
  }
  if (array.type == "uint16" || array.type == "uint32" || array.type == "uint64")
    return UnsignedFor(array, dtype, file, what);
  if (array.type == "void1" || array.type == "float8" ||
      (array.type == "void2" && !any && dtype != DType::kBF16))
    return OtherType(array, dtype, type, file, what);
  return array.value;
}

}  // namespace heddle::tools
