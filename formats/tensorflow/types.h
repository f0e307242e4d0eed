// TensorFlow's element types, and how heddle holds them.
#pragma once

#include <cstdint>
#include <string_view>

#include "formats/lowering/tensor_bytes.h"
#include "heddle/dtype.h"

namespace heddle::tensorflow {

// TensorFlow's DataType; 100 more for a reference.
enum DataType : int {
  kNoType = 0,
  kFloat = 1,
  kDouble = 2,
  kInt32 = 3,
  kUint8 = 4,
  kInt16 = 5,
  kInt8 = 6,
  kString = 7,
  kComplex64 = 8,
  kInt64 = 9,
  kBool = 10,
  kQint8 = 11,
  kQuint8 = 12,
  kQint32 = 13,
  kBfloat16 = 14,
  kQint16 = 15,
  kQuint16 = 16,
  kUint16 = 17,
  kComplex128 = 18,
  kHalf = 19,
  kResource = 20,
  kVariant = 21,
  kUint32 = 22,
  kUint64 = 23,
};
inline constexpr int kReference = 100;

// The type that a reference refers to; any other type is returned as it is.
constexpr int BaseType(int64_t type) {
  return static_cast<int>(type > kReference ? type - kReference : type);
}
const formats::ElementTypes& Types();
// The dtype in which heddle holds elements of this type: the same where it exists; a signed one of
// twice the width (int32 for uint16, int64 for uint32); or one of the same bits (int64 for uint64).
// kUnknown for strings, resources, variants and unknown types.
DType StorageOf(int64_t type);
// The type whose own dtype is `dtype`, not a narrower one that is held in it.
int TypeOf(DType dtype);
// NumPy's name: "float32", "uint16", "string", …
std::string_view TypeName(int64_t type);

}  // namespace heddle::tensorflow
