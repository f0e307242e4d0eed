#include "formats/onnx/tensor_data.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/error.h"
#include "core/memory/bytes.h"
#include "formats/wire_fields.h"
#include "heddle/string_tensor.h"

namespace heddle::onnx {
namespace {

using wire::Field;
using wire::Fields;

struct TypeFacts {
  std::string_view name;
  DType storage = DType::kUnknown;
  int bits = 0;
  uint32_t field = 0;  // of TensorProto that holds typed values
};

constexpr uint32_t kFloatData = 4, kInt32Data = 5, kStringData = 6, kInt64Data = 7,
                   kDoubleData = 10, kUint64Data = 11;

// Sparse tensors have no contents that their claimed size could be compared with. Files that hold
// dense tensors themselves are no larger.
constexpr size_t kMostDense = size_t{2} << 30;

constexpr std::array<TypeFacts, 27> kTypes = {{
    {"undefined", DType::kUnknown, 0, 0},          {"float32", DType::kF32, 32, kFloatData},
    {"uint8", DType::kU8, 8, kInt32Data},          {"int8", DType::kI8, 8, kInt32Data},
    {"uint16", DType::kI32, 16, kInt32Data},       {"int16", DType::kI16, 16, kInt32Data},
    {"int32", DType::kI32, 32, kInt32Data},        {"int64", DType::kI64, 64, kInt64Data},
    {"string", DType::kUnknown, 0, kStringData},   {"bool", DType::kBool, 8, kInt32Data},
    {"float16", DType::kF16, 16, kInt32Data},      {"float64", DType::kF64, 64, kDoubleData},
    {"uint32", DType::kI64, 32, kUint64Data},      {"uint64", DType::kI64, 64, kUint64Data},
    {"complex64", DType::kC64, 64, kFloatData},    {"complex128", DType::kC128, 128, kDoubleData},
    {"bfloat16", DType::kBF16, 16, kInt32Data},    {"float8e4m3fn", DType::kU8, 8, kInt32Data},
    {"float8e4m3fnuz", DType::kU8, 8, kInt32Data}, {"float8e5m2", DType::kU8, 8, kInt32Data},
    {"float8e5m2fnuz", DType::kU8, 8, kInt32Data}, {"uint4", DType::kU8, 4, kInt32Data},
    {"int4", DType::kI8, 4, kInt32Data},           {"float4e2m1", DType::kU8, 4, kInt32Data},
    {"float8e8m0", DType::kU8, 8, kInt32Data},     {"uint2", DType::kU8, 2, kInt32Data},
    {"int2", DType::kI8, 2, kInt32Data},
}};

const TypeFacts& FactsOf(int type) {
  return kTypes[type > 0 && type < static_cast<int>(kTypes.size()) ? static_cast<size_t>(type) : 0];
}

bool IsSignedNarrow(int type) { return type == kInt4 || type == kInt2; }

// `bits` wide elements, the first in the lowest bits of a byte.
void UnpackBits(std::string_view raw, int bits, bool is_signed, int64_t count, uint8_t* to) {
  const int per_byte = 8 / bits, mask = (1 << bits) - 1;
  for (int64_t i = 0; i < count; ++i) {
    const auto byte = static_cast<uint8_t>(raw[static_cast<size_t>(i / per_byte)]);
    int v = byte >> (i % per_byte * bits) & mask;
    if (is_signed && v > mask / 2) v -= mask + 1;
    to[i] = static_cast<uint8_t>(v);
  }
}

template <typename From, typename To>
void Widen(std::string_view raw, int64_t count, void* to) {
  for (int64_t i = 0; i < count; ++i) {
    From v;
    std::memcpy(&v, raw.data() + static_cast<size_t>(i) * sizeof(From), sizeof(From));
    static_cast<To*>(to)[i] = static_cast<To>(v);
  }
}

// Bytes of `count` elements in raw_data.
size_t RawBytes(int type, int64_t count) {
  return (static_cast<size_t>(count) * static_cast<size_t>(FactsOf(type).bits) + 7) / 8;
}

// The values of int32_data, int64_data or uint64_data, one after another.
template <typename Each>
Status ForVarints(const TensorData& data, Each each) {
  for (std::string_view rest : data.typed) {
    uint64_t v = 0;
    while (!rest.empty()) {
      if (!wire::TakeVarint(&rest, &v)) return DataLoss(data.What(), ": damaged values");
      each(v);
    }
  }
  return Status::Ok();
}

void StoreInteger(DType storage, int64_t i, uint64_t v, void* to) {
  switch (SizeOf(storage)) {
    case 1:
      static_cast<uint8_t*>(to)[i] = static_cast<uint8_t>(v);
      break;
    case 2:
      static_cast<uint16_t*>(to)[i] = static_cast<uint16_t>(v);
      break;
    case 4:
      static_cast<uint32_t*>(to)[i] = static_cast<uint32_t>(v);
      break;
    default:
      static_cast<uint64_t*>(to)[i] = v;
  }
}

Status WrongCount(const TensorData& data, int64_t want, uint64_t got) {
  return InvalidArgument(data.What(), ": ", got, " values are stored, ", want, " are expected");
}

Status UnpackIntegers(const TensorData& data, int64_t count, void* to) {
  const TypeFacts& facts = FactsOf(data.type);
  const int per = facts.bits < 8 ? 8 / facts.bits : 1;
  const int64_t entries = (count + per - 1) / per;
  int64_t seen = 0;
  std::string packed;
  HEDDLE_RETURN_IF_ERROR(ForVarints(data, [&](uint64_t v) {
    if (seen++ >= entries) return;
    if (per > 1)
      packed.push_back(static_cast<char>(v));
    else
      StoreInteger(facts.storage, seen - 1, v, to);
  }));
  if (seen != entries) return WrongCount(data, entries, static_cast<uint64_t>(seen));
  if (per > 1)
    UnpackBits(packed, facts.bits, IsSignedNarrow(data.type), count, static_cast<uint8_t*>(to));
  return Status::Ok();
}

Status UnpackTyped(const TensorData& data, int64_t count, void* to) {
  const TypeFacts& facts = FactsOf(data.type);
  if (count > 0 && data.typed_field != facts.field)
    return InvalidArgument(data.What(), ": its values are in field ", data.typed_field,
                           " of TensorProto; those of this type belong into field ", facts.field);
  if (facts.field != kFloatData && facts.field != kDoubleData)
    return UnpackIntegers(data, count, to);
  const size_t want = static_cast<size_t>(count) * SizeOf(facts.storage);
  size_t stored = 0;
  for (std::string_view part : data.typed) stored += part.size();
  if (stored != want) return WrongCount(data, count, stored / SizeOf(facts.storage));
  char* at = static_cast<char*>(to);
  for (std::string_view part : data.typed) {
    std::memcpy(at, part.data(), part.size());
    at += part.size();
  }
  return Status::Ok();
}

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
  if (data->has_typed && data->typed_field != f.number)
    return DataLoss("a tensor with values in two fields");
  const bool is_float = f.number == kFloatData, is_double = f.number == kDoubleData;
  const uint32_t single = is_float ? Field::kFixed32 : is_double ? Field::kFixed64 : Field::kVarint;
  if (f.wire_type != Field::kBytes && f.wire_type != single)
    return DataLoss("damaged or cut short in a tensor");
  data->has_typed = true;
  data->typed_field = f.number;
  std::string_view part = f.payload;
  if (f.wire_type == Field::kVarint) {  // the value behind the tag
    std::string_view rest = f.whole;
    uint64_t tag = 0;
    wire::TakeVarint(&rest, &tag);
    part = rest;
  }
  if ((is_float && part.size() % 4 != 0) || (is_double && part.size() % 8 != 0))
    return DataLoss("damaged or cut short in a tensor");
  data->typed.push_back(part);
  return Status::Ok();
}

Result<Shape> ShapeOf(const TensorData& data) {
  if (data.dims.size() > static_cast<size_t>(Shape::kMaxRank))
    return Unimplemented(data.What(), ": rank ", data.dims.size(), " is above the limit of ",
                         Shape::kMaxRank);
  return Shape(std::span<const int64_t>(data.dims));
}

Result<Value> MakeStrings(const TensorData& data) {
  HEDDLE_ASSIGN_OR_RETURN(const int64_t count, data.Count());
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, ShapeOf(data));
  if (data.has_raw || data.external)
    return InvalidArgument(data.What(), ": strings cannot be stored as raw data");
  if (static_cast<uint64_t>(count) != data.strings.size())
    return WrongCount(data, count, data.strings.size());
  return ValueOf(StringTensor{shape, {data.strings.begin(), data.strings.end()}});
}

}  // namespace

DType StorageOf(int type) { return FactsOf(type).storage; }
std::string_view TypeName(int type) { return FactsOf(type).name; }
int BitsOf(int type) { return FactsOf(type).bits; }

int TypeOf(DType dtype) {
  static constexpr int kOf[] = {kBool,      kUint8,      kInt8,         kInt16, kInt32,
                                kInt64,     kFloat16,    kBfloat16,     kFloat, kDouble,
                                kComplex64, kComplex128, kUndefinedType};
  return kOf[static_cast<size_t>(dtype)];
}

bool IsRawStorage(int type) {
  const TypeFacts& facts = FactsOf(type);
  return facts.bits > 0 && facts.bits == static_cast<int>(SizeOf(facts.storage)) * 8;
}

std::string TensorData::What() const {
  std::string text = StrCat("tensor '", name, "' (", TypeName(type), " [");
  for (size_t i = 0; i < dims.size(); ++i) text += StrCat(i == 0 ? "" : ", ", dims[i]);
  return text + "])";
}

Result<int64_t> TensorData::Count() const {
  HEDDLE_ASSIGN_OR_RETURN(const size_t bytes, StoredBytes());
  return static_cast<int64_t>(bytes / std::max<size_t>(SizeOf(StorageOf(type)), 1));
}

Result<size_t> TensorData::StoredBytes() const {
  if (type != kString && StorageOf(type) == DType::kUnknown)
    return Unimplemented(What(), ": ", type, " is no element type that heddle knows");
  if (dims.size() > static_cast<size_t>(Shape::kMaxRank))
    return Unimplemented(What(), ": rank ", dims.size(), " is above the limit of ",
                         Shape::kMaxRank);
  unsigned __int128 bytes = type == kString ? 1 : SizeOf(StorageOf(type));
  bool empty = false;
  for (int64_t d : dims) {
    if (d < 0) return InvalidArgument(What(), ": a negative dimension");
    empty = empty || d == 0;
    bytes = d > 0 && bytes < kImpossibleBytes ? bytes * static_cast<uint64_t>(d) : bytes;
  }
  if (empty) return size_t{0};
  if (bytes >= kImpossibleBytes) return InvalidArgument(What(), ": larger than any memory");
  return static_cast<size_t>(bytes);
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

void UnpackRaw(int type, std::string_view raw, int64_t count, void* to) {
  const TypeFacts& facts = FactsOf(type);
  if (facts.bits < 8)
    UnpackBits(raw, facts.bits, IsSignedNarrow(type), count, static_cast<uint8_t*>(to));
  else if (type == kUint16)
    Widen<uint16_t, int32_t>(raw, count, to);
  else if (type == kUint32)
    Widen<uint32_t, int64_t>(raw, count, to);
  else
    std::memcpy(to, raw.data(), raw.size());
}

Result<Tensor> MakeTensor(const TensorData& data) {
  HEDDLE_ASSIGN_OR_RETURN(const int64_t count, data.Count());
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, ShapeOf(data));
  if (data.type == kString) return InvalidArgument(data.What(), ": numbers are expected here");
  if (data.external) return Internal(data.What(), ": external data is not at hand");
  // The contents must be there before memory is taken for them.
  const size_t raw_bytes = RawBytes(data.type, count);
  if (data.has_raw && data.raw.size() != raw_bytes)
    return InvalidArgument(data.What(), ": ", data.raw.size(), " bytes are stored, ", raw_bytes,
                           " are expected");
  size_t typed_bytes = 0;
  for (std::string_view part : data.typed) typed_bytes += part.size();
  if (!data.has_raw && count > 0 && typed_bytes * 8 < static_cast<uint64_t>(count))
    return WrongCount(data, count, data.typed.empty() ? 0 : typed_bytes);
  Tensor t = Tensor::Empty(StorageOf(data.type), shape);
  if (!t.initialized() && count > 0) return ResourceExhausted(data.What(), ": no memory for it");
  if (data.has_raw)
    UnpackRaw(data.type, data.raw, count, t.mutable_raw());
  else
    HEDDLE_RETURN_IF_ERROR(UnpackTyped(data, count, t.mutable_raw()));
  return t;
}

Result<Value> MakeValue(const TensorData& data) {
  if (data.type == kString) return MakeStrings(data);
  HEDDLE_ASSIGN_OR_RETURN(Tensor t, MakeTensor(data));
  return Value(std::move(t));
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
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, ShapeOf(dense));
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
