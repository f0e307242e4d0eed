// Tensors in ONNX's form (TensorProto, SparseTensorProto), and their conversion to heddle's.
//
// Ownership: TensorData refers to the bytes that it was read from. Threads: any may read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/lowering/tensor_bytes.h"
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

const formats::ElementTypes& Types();
// The dtype in which heddle holds elements of this type: the same where it exists, else a wider one
// with the same values; narrow floats are held as bits, one element per byte. kUnknown for strings
// and unknown types.
DType StorageOf(int type);
// The type whose own dtype is `dtype`, not a narrower one that is held in it.
int TypeOf(DType dtype);
// "float32", "uint16", "int4", "string", …
std::string_view TypeName(int type);
// Bits per element in raw_data; 0 for strings and unknown types.
int BitsOf(int type);

using TensorData = formats::TensorBytes;

struct SparseData {
  TensorData values, indices;
  std::vector<int64_t> dims;
};

Result<TensorData> ReadTensorData(std::string_view bytes);
Result<SparseData> ReadSparseData(std::string_view bytes);

// Makes the dense tensor. kInvalidArgument: indices outside of the tensor; kResourceExhausted.
Result<Tensor> MakeDense(const SparseData& data);

}  // namespace heddle::onnx
