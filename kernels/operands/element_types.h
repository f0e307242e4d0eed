// ONNX's element types that DType lacks: how a tensor of another dtype holds them.
//
// 8-bit and 4-bit floats are uint8 with their bits, 4-bit and 2-bit integers int8 or uint8 with
// their values; uint16 is int32 and uint32 is int64 with their values, uint64 is int64 with its
// bits.
#pragma once

#include <cstdint>

#include "heddle/tensor.h"

namespace heddle {

// Numbers of ONNX's TensorProto.DataType.
enum class ElementType : uint8_t {
  kUndefined = 0,
  kFloat = 1,
  kUint8 = 2,
  kInt8 = 3,
  kUint16 = 4,
  kInt16 = 5,
  kInt32 = 6,
  kInt64 = 7,
  kString = 8,
  kBool = 9,
  kFloat16 = 10,
  kDouble = 11,
  kUint32 = 12,
  kUint64 = 13,
  kComplex64 = 14,
  kComplex128 = 15,
  kBfloat16 = 16,
  kFloat8E4M3FN = 17,
  kFloat8E4M3FNUZ = 18,
  kFloat8E5M2 = 19,
  kFloat8E5M2FNUZ = 20,
  kUint4 = 21,
  kInt4 = 22,
  kFloat4E2M1 = 23,
  kFloat8E8M0 = 24,
  kUint2 = 25,
  kInt2 = 26,
};

// The type that a tensor of `dtype` has where nothing else is said.
ElementType OwnElementType(DType dtype);
// The element type that attribute value `number` names; an error unless `dtype` stores it. 0 names
// the dtype's own type.
Result<ElementType> StoredAs(int64_t number, DType dtype);
int BitsOf(ElementType type);
bool IsIntegral(ElementType type);  // bool included
bool IsUnsigned(ElementType type);
// Floats of fewer than 16 bits.
bool IsTinyFloat(ElementType type);

enum class Rounding : uint8_t { kNearest, kUp, kDown };  // of float8e8m0 alone

// A number as an 8-bit or 4-bit float's bits, rounded to the nearest, ties to even. What is too
// large becomes the largest number, or without `saturate` an infinity or NaN.
uint8_t ToTinyFloat(double x, ElementType type, bool saturate, Rounding rounding);
double FromTinyFloat(uint8_t bits, ElementType type);
// The low bits of an integer as `type` keeps them: what lies beyond is lost, signs are extended.
int64_t WrapInteger(int64_t x, ElementType type);
// The least and the greatest integer of a type of at most 32 bits.
int64_t LeastOf(ElementType type);
int64_t GreatestOf(ElementType type);

// One element of a tensor: an integer (of uint64 the bits) or another number.
struct Number {
  bool integral;
  int64_t integer;
  double real;
};
Number NumberAt(const Tensor& t, int64_t i, ElementType type);

}  // namespace heddle
