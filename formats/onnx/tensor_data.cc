#include "formats/onnx/tensor_data.h"

#include <cstring>

#include "core/error.h"
#include "formats/wire_fields.h"

namespace heddle::onnx {
namespace {

using wire::Field;
using wire::Fields;

constexpr uint32_t kFloatData = 4, kInt32Data = 5, kStringData = 6, kInt64Data = 7,
                   kDoubleData = 10, kUint64Data = 11;

// The largest dense form of a sparse tensor, in bytes: a sparse tensor's claimed size cannot be
// compared with its contents. Files with dense tensors have the same limit.
constexpr size_t kMostDense = size_t{2} << 30;

constexpr formats::ElementType kTypes[] = {
    {kFloat, "float32", DType::kF32, 32, kFloatData},
    {kUint8, "uint8", DType::kU8, 8, kInt32Data},
    {kInt8, "int8", DType::kI8, 8, kInt32Data},
    {kUint16, "uint16", DType::kI32, 16, kInt32Data},
    {kInt16, "int16", DType::kI16, 16, kInt32Data},
    {kInt32, "int32", DType::kI32, 32, kInt32Data},
    {kInt64, "int64", DType::kI64, 64, kInt64Data},
    {kString, "string", DType::kUnknown, 0, kStringData, true},
    {kBool, "bool", DType::kBool, 8, kInt32Data},
    {kFloat16, "float16", DType::kF16, 16, kInt32Data},
    {kDouble, "float64", DType::kF64, 64, kDoubleData},
    {kUint32, "uint32", DType::kI64, 32, kUint64Data},
    {kUint64, "uint64", DType::kI64, 64, kUint64Data},
    {kComplex64, "complex64", DType::kC64, 64, kFloatData},
    {kComplex128, "complex128", DType::kC128, 128, kDoubleData},
    {kBfloat16, "bfloat16", DType::kBF16, 16, kInt32Data},
    {kFloat8E4M3Fn, "float8e4m3fn", DType::kU8, 8, kInt32Data},
    {kFloat8E4M3Fnuz, "float8e4m3fnuz", DType::kU8, 8, kInt32Data},
    {kFloat8E5M2, "float8e5m2", DType::kU8, 8, kInt32Data},
    {kFloat8E5M2Fnuz, "float8e5m2fnuz", DType::kU8, 8, kInt32Data},
    {kUint4, "uint4", DType::kU8, 4, kInt32Data},
    {kInt4, "int4", DType::kI8, 4, kInt32Data},
    {kFloat4E2M1, "float4e2m1", DType::kU8, 4, kInt32Data},
    {kFloat8E8M0, "float8e8m0", DType::kU8, 8, kInt32Data},
    {kUint2, "uint2", DType::kU8, 2, kInt32Data},
    {kInt2, "int2", DType::kI8, 2, kInt32Data},
};
constexpr formats::ElementTypes kTable{kTypes};

Status ReadEntry(std::string_view bytes, TensorData* data) {
  std::string_view key, value;
  Fields fields(bytes);
  Field f;
  while (!fields.done()) {
    if (!fields.Next(&f)) return DataLoss("damaged or cut short in external data");
    if (f.Is(1)) key = f.payload;
    if (f.Is(2)) value = f.payload;
  }
  if (key == "location") data->location = value;
  if (key == "offset") data->offset = value;
  if (key == "length") data->length = value;
  if (key == "checksum") data->checksum = value;
  return Status::Ok();
}

Status ReadDim(const Field& f, std::vector<int64_t>* dims) {
  if (f.wire_type == Field::kVarint) {
    dims->push_back(f.integer());
    return Status::Ok();
  }
  std::string_view rest = f.payload;
  uint64_t v = 0;
  while (!rest.empty()) {
    if (!wire::TakeVarint(&rest, &v)) return DataLoss("damaged or cut short in dimensions");
    dims->push_back(static_cast<int64_t>(v));
  }
  return Status::Ok();
}

Status ReadTyped(const Field& f, TensorData* data) {
  if (!data->typed.empty() && data->typed_field != f.number)
    return DataLoss("a tensor with values in two fields");
  const size_t width = f.number == kFloatData ? 4 : f.number == kDoubleData ? 8 : 0;
  return data->AddTyped(f, width) ? Status::Ok() : DataLoss("damaged or cut short in a tensor");
}

}  // namespace

const formats::ElementTypes& Types() { return kTable; }
DType StorageOf(int type) { return kTable.StorageOf(type); }
int TypeOf(DType dtype) { return kTable.TypeOf(dtype); }

std::string_view TypeName(int type) {
  const formats::ElementType* element = kTable.Find(type);
  return element == nullptr ? "undefined" : element->name;
}

int BitsOf(int type) {
  const formats::ElementType* element = kTable.Find(type);
  return element == nullptr ? 0 : element->bits;
}

Result<TensorData> ReadTensorData(std::string_view bytes) {
  TensorData data;
  Fields fields(bytes);
  Field f;
  while (!fields.done()) {
    if (!fields.Next(&f)) return DataLoss("damaged or cut short in a tensor");
    switch (f.number) {
      case 1:
        HEDDLE_RETURN_IF_ERROR(ReadDim(f, &data.dims));
        break;
      case 2:
        data.type = static_cast<int>(f.varint);
        data.element = kTable.Find(data.type);
        break;
      case kFloatData:
      case kInt32Data:
      case kInt64Data:
      case kDoubleData:
      case kUint64Data:
        HEDDLE_RETURN_IF_ERROR(ReadTyped(f, &data));
        break;
      case kStringData:
        data.strings.push_back(f.payload);
        break;
      case 8:
        data.name = f.payload;
        break;
      case 9:
        data.raw = f.payload;
        data.has_raw = f.wire_type == Field::kBytes;
        break;
      case 13:
        HEDDLE_RETURN_IF_ERROR(ReadEntry(f.payload, &data));
        break;
      case 14:
        data.external = f.varint == 1;
        break;
      default:
        break;
    }
  }
  return data;
}

Result<SparseData> ReadSparseData(std::string_view bytes) {
  SparseData data;
  Fields fields(bytes);
  Field f;
  while (!fields.done()) {
    if (!fields.Next(&f)) return DataLoss("damaged or cut short in a sparse tensor");
    if (f.Is(1)) {
      HEDDLE_ASSIGN_OR_RETURN(data.values, ReadTensorData(f.payload));
    } else if (f.Is(2)) {
      HEDDLE_ASSIGN_OR_RETURN(data.indices, ReadTensorData(f.payload));
    } else if (f.number == 3) {
      HEDDLE_RETURN_IF_ERROR(ReadDim(f, &data.dims));
    }
  }
  return data;
}

Result<Tensor> MakeDense(const SparseData& data) {
  TensorData dense = data.values;
  dense.dims = data.dims;
  HEDDLE_ASSIGN_OR_RETURN(const size_t bytes, dense.StoredBytes());
  if (bytes > kMostDense)
    return ResourceExhausted("sparse ", dense.What(), ": ", bytes,
                             " bytes as a dense tensor; at most ", kMostDense, " are made of one");
  HEDDLE_ASSIGN_OR_RETURN(const Tensor values, MakeTensor(data.values));
  HEDDLE_ASSIGN_OR_RETURN(const Tensor indices, MakeTensor(data.indices));
  const Shape shape(std::span<const int64_t>(data.dims));
  const auto rank = static_cast<int64_t>(data.dims.size());
  const int64_t n = values.numel();
  const bool linear = indices.rank() == 1;
  if (indices.dtype() != DType::kI64 ||
      (linear ? indices.numel() != n
              : indices.rank() != 2 || indices.dim(0) != n || indices.dim(1) != rank))
    return InvalidArgument("sparse ", dense.What(), ": its indices must be int64 [", n, "] or [", n,
                           ", ", rank, "]");
  Tensor t = Tensor::Zeros(values.dtype(), shape);
  if (!t.initialized() && bytes > 0) return ResourceExhausted(dense.What(), ": no memory for it");
  const size_t size = SizeOf(values.dtype());
  for (int64_t i = 0; i < n; ++i) {
    int64_t at = 0;
    const int64_t* index = indices.data<int64_t>() + (linear ? i : i * rank);
    if (linear) at = index[0];
    for (int64_t d = 0; !linear && d < rank; ++d) {
      const int64_t dim = data.dims[static_cast<size_t>(d)];
      at = index[d] < 0 || index[d] >= dim || at < 0 ? -1 : at * dim + index[d];
    }
    if (at < 0 || at >= t.numel())
      return InvalidArgument("sparse ", dense.What(), ": index ", i, " is outside of it");
    std::memcpy(static_cast<char*>(t.mutable_raw()) + static_cast<size_t>(at) * size,
                static_cast<const char*>(values.raw()) + static_cast<size_t>(i) * size, size);
  }
  return t;
}

}  // namespace heddle::onnx
