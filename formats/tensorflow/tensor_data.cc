#include "formats/tensorflow/tensor_data.h"

#include <algorithm>
#include <complex>
#include <cstring>

#include "core/error.h"
#include "formats/wire_fields.h"
#include "heddle/string_tensor.h"

namespace heddle::tensorflow {
namespace {

using wire::Field;
using wire::Fields;

// One value may stand for all of a tensor, so that few bytes can claim any size.
constexpr int64_t kMostBytes = int64_t{1} << 31;

struct TypeInfo {
  int type;
  std::string_view name;
  DType storage;
  uint32_t bytes;  // of an element in a file
  uint32_t field;  // of TensorProto, with its values
};

constexpr TypeInfo kTypes[] = {
    {kFloat, "float32", DType::kF32, 4, 5},       {kDouble, "float64", DType::kF64, 8, 6},
    {kInt32, "int32", DType::kI32, 4, 7},         {kUint8, "uint8", DType::kU8, 1, 7},
    {kInt16, "int16", DType::kI16, 2, 7},         {kInt8, "int8", DType::kI8, 1, 7},
    {kString, "string", DType::kUnknown, 0, 8},   {kComplex64, "complex64", DType::kC64, 8, 9},
    {kInt64, "int64", DType::kI64, 8, 10},        {kBool, "bool", DType::kBool, 1, 11},
    {kQint8, "qint8", DType::kI8, 1, 7},          {kQuint8, "quint8", DType::kU8, 1, 7},
    {kQint32, "qint32", DType::kI32, 4, 7},       {kBfloat16, "bfloat16", DType::kBF16, 2, 13},
    {kQint16, "qint16", DType::kI16, 2, 7},       {kQuint16, "quint16", DType::kI32, 2, 7},
    {kUint16, "uint16", DType::kI32, 2, 7},       {kComplex128, "complex128", DType::kC128, 16, 12},
    {kHalf, "float16", DType::kF16, 2, 13},       {kResource, "resource", DType::kUnknown, 0, 0},
    {kVariant, "variant", DType::kUnknown, 0, 0}, {kUint32, "uint32", DType::kI64, 4, 16},
    {kUint64, "uint64", DType::kI64, 8, 17},
};

const TypeInfo* Find(int64_t type) {
  for (const TypeInfo& info : kTypes)
    if (info.type == type) return &info;
  return nullptr;
}

template <typename T>
T Read(const char* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

// The values of the type's own field, widened to what heddle stores, the last one repeated.
class TypedValues {
 public:
  TypedValues(const TensorData& data, const TypeInfo& info) : data_(data), info_(info) {}

  // False: damaged.
  template <typename T>
  bool Fill(T* to, int64_t count) {
    int64_t filled = 0;
    for (std::string_view stretch : data_.typed) {
      while (!stretch.empty() && filled < count) {
        T value{};
        if (!Take(&stretch, &value)) return false;
        to[filled++] = value;
      }
    }
    const T last = filled > 0 ? to[filled - 1] : T{};
    std::fill(to + filled, to + count, last);
    return true;
  }

 private:
  template <typename T>
  bool Take(std::string_view* rest, T* value) const {
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double> ||
                  std::is_same_v<T, std::complex<float>> ||
                  std::is_same_v<T, std::complex<double>>) {
      if (rest->size() < sizeof(T)) return false;
      *value = Read<T>(rest->data());
      rest->remove_prefix(sizeof(T));
      return true;
    } else {
      uint64_t bits = 0;
      if (!wire::TakeVarint(rest, &bits)) return false;
      if constexpr (std::is_same_v<T, bool>)
        *value = bits != 0;
      else
        *value = static_cast<T>(info_.bytes == 2 && sizeof(T) == 4   ? bits & 0xffff
                                : info_.bytes == 4 && sizeof(T) == 8 ? bits & 0xffffffff
                                                                     : bits);
      return true;
    }
  }

  const TensorData& data_;
  const TypeInfo& info_;
};

bool FillTyped(const TensorData& data, const TypeInfo& info, Tensor* t) {
  TypedValues values(data, info);
  const int64_t n = t->numel();
  switch (t->dtype()) {
    case DType::kF16:
    case DType::kBF16:
      return values.Fill(static_cast<uint16_t*>(t->mutable_raw()), n);
    case DType::kF32:
      return values.Fill(t->mutable_data<float>(), n);
    case DType::kF64:
      return values.Fill(t->mutable_data<double>(), n);
    case DType::kC64:
      return values.Fill(t->mutable_data<std::complex<float>>(), n);
    case DType::kC128:
      return values.Fill(t->mutable_data<std::complex<double>>(), n);
    case DType::kBool:
      return values.Fill(t->mutable_data<bool>(), n);
    case DType::kU8:
      return values.Fill(t->mutable_data<uint8_t>(), n);
    case DType::kI8:
      return values.Fill(t->mutable_data<int8_t>(), n);
    case DType::kI16:
      return values.Fill(t->mutable_data<int16_t>(), n);
    case DType::kI32:
      return values.Fill(t->mutable_data<int32_t>(), n);
    case DType::kI64:
      return values.Fill(t->mutable_data<int64_t>(), n);
    default:
      return false;
  }
}

Result<Value> MakeStrings(const TensorData& data, int64_t count) {
  if (data.has_content)
    return Unimplemented("a tensor of ", data.What(), " whose strings stand in tensor_content");
  // The last one may stand for many.
  const size_t last = data.strings.empty() ? 0 : data.strings.back().size();
  if (static_cast<size_t>(count) > static_cast<size_t>(kMostBytes) / (sizeof(std::string) + last))
    return InvalidArgument("a tensor of ", data.What(), " is larger than ", kMostBytes, " bytes");
  std::vector<std::string> texts;
  for (int64_t i = 0; i < count; ++i) {
    const auto k = std::min(static_cast<size_t>(i), data.strings.size() - 1);
    texts.emplace_back(data.strings.empty() ? std::string_view() : data.strings[k]);
  }
  return ValueOf(StringTensor{Shape(std::span<const int64_t>(data.dims)), std::move(texts)});
}

}  // namespace

DType StorageOf(int64_t type) {
  const TypeInfo* info = Find(type);
  return info == nullptr ? DType::kUnknown : info->storage;
}

int TypeOf(DType dtype) {
  for (const TypeInfo& info : kTypes)
    if (info.storage == dtype && dtype != DType::kUnknown) return info.type;
  return kNoType;
}

std::string_view TypeName(int64_t type) {
  const TypeInfo* info = Find(type);
  return info == nullptr ? "an unknown type" : info->name;
}

size_t FileBytesOf(int64_t type) {
  const TypeInfo* info = Find(type);
  return info == nullptr ? 0 : info->bytes;
}

bool IsRawStorage(int64_t type) {
  const TypeInfo* info = Find(type);
  return info != nullptr && info->bytes > 0 && info->bytes == SizeOf(info->storage);
}

void UnpackRaw(int64_t type, std::string_view raw, int64_t count, void* to) {
  if (IsRawStorage(type)) {
    if (!raw.empty()) std::memcpy(to, raw.data(), raw.size());
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    if (FileBytesOf(type) == 2)
      static_cast<int32_t*>(to)[i] = Read<uint16_t>(raw.data() + 2 * i);
    else
      static_cast<int64_t*>(to)[i] = Read<uint32_t>(raw.data() + 4 * i);
  }
}

Result<int64_t> TensorData::Count() const {
  if (unknown_rank) return InvalidArgument("a tensor of unknown rank");
  if (dims.size() > static_cast<size_t>(Shape::kMaxRank))
    return InvalidArgument("a tensor of ", What(), ": its rank is above the limit of ",
                           Shape::kMaxRank);
  int64_t count = 1;
  bool empty = false;
  for (int64_t d : dims) {
    if (d < 0) return InvalidArgument("a tensor of ", What(), ": a dimension is negative");
    empty = empty || d == 0;
  }
  if (empty) return 0;
  const auto bytes = static_cast<int64_t>(std::max<size_t>(SizeOf(StorageOf(type)), 1));
  for (int64_t d : dims) {
    if (count > kMostBytes / bytes / d)
      return InvalidArgument("a tensor of ", What(), " is larger than ", kMostBytes, " bytes");
    count *= d;
  }
  return count;
}

std::string TensorData::What() const {
  std::string text = StrCat(TypeName(type), " [");
  for (size_t i = 0; i < dims.size(); ++i) text += StrCat(i == 0 ? "" : ", ", dims[i]);
  return text + "]";
}

Result<TensorData> ReadTensorData(std::string_view bytes) {
  TensorData data;
  const auto damaged = [] { return DataLoss("a tensor is damaged, or cut short"); };
  // The field of the values is known once the type is, which may come behind them.
  Fields first(bytes);
  Field f;
  while (!first.done()) {
    if (!first.Next(&f)) return damaged();
    if (f.IsVarint(1)) data.type = static_cast<int>(f.integer());
  }
  const TypeInfo* info = Find(data.type);
  const uint32_t wanted = info == nullptr ? 0 : info->field;
  Fields fields(bytes);
  while (!fields.done() && fields.Next(&f)) {
    if (f.Is(2)) {
      Fields shape(f.payload);
      Field part;
      while (!shape.done()) {
        if (!shape.Next(&part)) return damaged();
        if (part.IsVarint(3)) data.unknown_rank = part.varint != 0;
        if (!part.Is(2)) continue;
        int64_t size = 0;
        Fields dim(part.payload);
        Field d;
        while (!dim.done()) {
          if (!dim.Next(&d)) return damaged();
          if (d.IsVarint(1)) size = d.integer();
        }
        data.dims.push_back(size);
      }
    } else if (f.Is(4)) {
      data.content = f.payload;
      data.has_content = !f.payload.empty();
    } else if (f.number == wanted && wanted == 8 && f.wire_type == Field::kBytes) {
      data.strings.push_back(f.payload);
    } else if (f.number == wanted && wanted != 0) {
      // One value, or a packed stretch of them.
      std::string_view values = f.payload;
      if (f.wire_type == Field::kVarint) {
        values = f.whole;
        uint64_t tag = 0;
        wire::TakeVarint(&values, &tag);
      }
      data.typed.push_back(values);
    }
  }
  return data;
}

Result<Value> MakeValue(const TensorData& data) {
  HEDDLE_ASSIGN_OR_RETURN(const int64_t count, data.Count());
  if (data.type == kString) return MakeStrings(data, count);
  const TypeInfo* info = Find(data.type);
  if (info == nullptr || info->storage == DType::kUnknown)
    return Unimplemented("a constant of ", TypeName(data.type), " (type ", data.type, ")");
  const size_t wanted = static_cast<size_t>(count) * info->bytes;
  if (data.has_content && data.content.size() != wanted)
    return InvalidArgument("a tensor of ", data.What(), " has ", data.content.size(), " bytes; ",
                           wanted, " are expected");
  Tensor t = Tensor::Empty(info->storage, Shape(std::span<const int64_t>(data.dims)));
  if (!t.initialized() && count > 0)
    return ResourceExhausted("a tensor of ", data.What(), ": no memory for it");
  if (data.has_content)
    UnpackRaw(data.type, data.content, count, t.mutable_raw());
  else if (count > 0 && !FillTyped(data, *info, &t))
    return DataLoss("the values of a tensor of ", data.What(), " are damaged");
  return Value(std::move(t));
}

Result<Tensor> MakeTensor(const TensorData& data) {
  HEDDLE_ASSIGN_OR_RETURN(Value value, MakeValue(data));
  if (!value.is_tensor()) return InvalidArgument("a tensor of strings, where numbers are expected");
  return std::move(value.tensor());
}

}  // namespace heddle::tensorflow
