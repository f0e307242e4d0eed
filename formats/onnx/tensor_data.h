// Tensors as ONNX stores them (TensorProto, SparseTensorProto), and heddle's tensors of them.
//
// Ownership: TensorData refers to the bytes that it was read from. Threads: any may read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/dtype.h"
#include "heddle/status.h"
#include "heddle/value.h"

namespace heddle::onnx {

// TensorProto.DataType
enum ElementType : int {
  kUndefinedType = 0,
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
  kFloat8E4M3Fn = 17,
  kFloat8E4M3Fnuz = 18,
  kFloat8E5M2 = 19,
  kFloat8E5M2Fnuz = 20,
  kUint4 = 21,
  kInt4 = 22,
  kFloat4E2M1 = 23,
  kFloat8E8M0 = 24,
  kUint2 = 25,
  kInt2 = 26,
};

// The dtype in which heddle holds elements of this type: the same where there is one, else a wider
// one with the same values, or the bits of one element per byte for narrow floats. kUnknown for
// strings and what is no type.
DType StorageOf(int type);
// The type whose storage is `dtype` and nothing wider than needed.
int TypeOf(DType dtype);
// "float32", "uint16", "int4", "string", …
std::string_view TypeName(int type);
// Bits of an element in raw_data; 0 for strings and what is no type.
int BitsOf(int type);

struct TensorData {
  std::string_view name;
  int type = kUndefinedType;
  std::vector<int64_t> dims;
  std::string_view raw;
  bool has_raw = false;
  bool has_typed = false;
  // The typed field's values as they stand on the wire: fixed32 or fixed64 values or varints, in
  // stretches.
  std::vector<std::string_view> typed;
  uint32_t typed_field = 0;
  std::vector<std::string_view> strings;
  bool external = false;
  std::string_view location, offset, length;  // of external data

  // Bytes of heddle's tensor; an error where dims are negative or the size is impossible.
  Result<size_t> StoredBytes() const;
  // Elements; the same errors.
  Result<int64_t> Count() const;
  // "tensor 'w' (float32 [2, 3])"
  std::string What() const;
};

struct SparseData {
  TensorData values, indices;
  std::vector<int64_t> dims;
};

Result<TensorData> ReadTensorData(std::string_view bytes);
Result<SparseData> ReadSparseData(std::string_view bytes);

// Whether raw data of this type is heddle's storage byte for byte.
bool IsRawStorage(int type);

// `raw` unpacked to heddle's storage. Precondition: its length fits the count.
void UnpackRaw(int type, std::string_view raw, int64_t count, void* to);

// The tensor in memory of its own; a StringTensor for strings. Precondition: not external.
// kInvalidArgument: the data does not fit type and dims; kUnimplemented; kResourceExhausted.
Result<Value> MakeValue(const TensorData& data);
Result<Tensor> MakeTensor(const TensorData& data);
Result<Tensor> MakeDense(const SparseData& data);

}  // namespace heddle::onnx
