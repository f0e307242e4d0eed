#include "formats/tensorflow/tensor_data.h"

#include "core/error.h"
#include "formats/wire_fields.h"

namespace heddle::tensorflow {
namespace {

using wire::Field;
using wire::Fields;

constexpr formats::ElementType kTypes[] = {
    {kFloat, "float32", DType::kF32, 32, 5},
    {kDouble, "float64", DType::kF64, 64, 6},
    {kInt32, "int32", DType::kI32, 32, 7},
    {kUint8, "uint8", DType::kU8, 8, 7},
    {kInt16, "int16", DType::kI16, 16, 7},
    {kInt8, "int8", DType::kI8, 8, 7},
    {kString, "string", DType::kUnknown, 0, 8, true},
    {kComplex64, "complex64", DType::kC64, 64, 9},
    {kInt64, "int64", DType::kI64, 64, 10},
    {kBool, "bool", DType::kBool, 8, 11},
    {kQint8, "qint8", DType::kI8, 8, 7},
    {kQuint8, "quint8", DType::kU8, 8, 7},
    {kQint32, "qint32", DType::kI32, 32, 7},
    {kBfloat16, "bfloat16", DType::kBF16, 16, 13},
    {kQint16, "qint16", DType::kI16, 16, 7},
    {kQuint16, "quint16", DType::kI32, 16, 7},
    {kUint16, "uint16", DType::kI32, 16, 7},
    {kComplex128, "complex128", DType::kC128, 128, 12},
    {kHalf, "float16", DType::kF16, 16, 13},
    {kResource, "resource", DType::kUnknown, 0, 0},
    {kVariant, "variant", DType::kUnknown, 0, 0},
    {kUint32, "uint32", DType::kI64, 32, 16},
    {kUint64, "uint64", DType::kI64, 64, 17},
};
constexpr formats::ElementTypes kTable{kTypes};

}  // namespace

const formats::ElementTypes& Types() { return kTable; }
DType StorageOf(int64_t type) { return kTable.StorageOf(type); }
int TypeOf(DType dtype) { return kTable.TypeOf(dtype); }

std::string_view TypeName(int64_t type) {
  const formats::ElementType* element = kTable.Find(type);
  return element == nullptr ? "an unknown type" : element->name;
}

void SetType(TensorData* data, int64_t type) {
  data->type = static_cast<int>(type);
  data->element = kTable.Find(data->type);
  data->repeats = true;
}

Result<TensorData> ReadTensorData(std::string_view bytes) {
  TensorData data;
  SetType(&data, kNoType);
  const auto damaged = [] { return DataLoss("a tensor is damaged, or cut short"); };
  // First the type, which determines the field of the values and may come after them.
  Fields first(bytes);
  Field f;
  while (!first.done()) {
    if (!first.Next(&f)) return damaged();
    if (f.IsVarint(1)) SetType(&data, f.integer());
  }
  const uint32_t wanted = data.element == nullptr ? 0 : data.element->field;
  const size_t width = data.element == nullptr ? 0 : data.element->FixedWidth();
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
      data.raw = f.payload;
      data.has_raw = !f.payload.empty();
    } else if (f.number == wanted && data.is_text()) {
      if (f.wire_type == Field::kBytes) data.strings.push_back(f.payload);
    } else if (f.number == wanted && wanted != 0) {
      if (!data.AddTyped(f, width)) return damaged();
    }
  }
  return data;
}

}  // namespace heddle::tensorflow
