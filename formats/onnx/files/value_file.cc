// Reads and writes ONNX's files of values (heddle/onnx.h).
#include <algorithm>

#include "core/error.h"
#include "formats/onnx/source.h"
#include "formats/wire_fields.h"
#include "heddle/onnx.h"
#include "heddle/string_tensor.h"

namespace heddle {
namespace onnx {
namespace {

using wire::Field;
using wire::Fields;

// SequenceProto.DataType and OptionalProto.DataType
constexpr uint64_t kIsTensor = 1, kIsSequence = 3, kIsMap = 4;

const OnnxSource* SourceOf(const Program& program) {
  return program ? dynamic_cast<const OnnxSource*>(program.ir().source.get()) : nullptr;
}

Status NoModel() { return InvalidArgument("the program was not read from an ONNX model"); }

std::string TypeText(const Type& type) {
  // ONNX Runtime's names of element types, which are those of C.
  const auto element = [](int t) -> std::string {
    return t == kFloat ? "float" : t == kDouble ? "double" : std::string(TypeName(t));
  };
  const auto inner = [&](size_t i) { return type.inner.empty() ? "" : TypeText(type.inner[i]); };
  switch (type.kind) {
    case Type::Kind::kTensor:
      return StrCat("tensor(", element(type.element), ")");
    case Type::Kind::kSequence:
      return StrCat("seq(", inner(0), ")");
    case Type::Kind::kOptional:
      return StrCat("optional(", inner(0), ")");
    case Type::Kind::kMap:
      return StrCat("map(", element(type.element), ",", inner(0), ")");
    default:
      return "";
  }
}

std::vector<OnnxPort> PortsOf(const std::vector<TensorInfo>& infos,
                              const std::vector<Type>& types) {
  std::vector<OnnxPort> ports;
  for (size_t i = 0; i < infos.size() && i < types.size(); ++i) {
    const Type* elements = &types[i];
    while (!elements->inner.empty()) elements = elements->inner.data();
    ports.push_back({.name = infos[i].name,
                     .type = TypeText(types[i]),
                     .element = elements->element,
                     .ranked = types[i].ranked,
                     .dims = types[i].dims,
                     .keys = {},
                     .int_keys = {}});
  }
  return ports;
}

// --- reading

Result<Value> ReadTensor(const Type& type, std::string_view message) {
  HEDDLE_ASSIGN_OR_RETURN(const TensorData data, ReadTensorData(message));
  if (type.element != kUndefinedType && data.type != type.element)
    return InvalidArgument(data.What(), ": ", TypeName(type.element), " is expected");
  return MakeValue(data);
}

Result<Value> ReadSequence(const Type& type, std::string_view message) {
  TensorArray array;
  StringList texts;
  Fields fields(message);
  Field f;
  const Type element = type.inner.empty() ? Type{} : type.inner[0];
  while (!fields.done()) {
    if (!fields.Next(&f)) return DataLoss("damaged or cut short in a sequence");
    if (!f.Is(3)) continue;
    HEDDLE_ASSIGN_OR_RETURN(Value v, ReadTensor(element, f.payload));
    if (const auto strings = StringsIn(v))
      texts.push_back(*strings);
    else
      array.push_back(v.tensor());
  }
  if (element.element == kString || !texts.empty()) {
    if (!array.empty()) return InvalidArgument("a sequence of strings and of numbers");
    return ValueOf(std::move(texts));
  }
  return Value(std::move(array));
}

Result<Value> ReadValue(const Type& type, std::string_view message);

Result<Value> ReadOptional(const Type& type, std::string_view message) {
  Fields fields(message);
  Field f;
  const Type inner = type.inner.empty() ? Type{} : type.inner[0];
  while (!fields.done()) {
    if (!fields.Next(&f)) return DataLoss("damaged or cut short in an optional");
    if (f.Is(3) || f.Is(5)) {
      HEDDLE_ASSIGN_OR_RETURN(Value v, ReadValue(inner, f.payload));
      if (v.is_array() || StringListIn(v) != nullptr) return v;
      if (const auto strings = StringsIn(v)) return ValueOf(StringList{*strings});
      return Value(TensorArray{v.tensor()});
    }
  }
  const Type* elements = &inner;
  while (!elements->inner.empty()) elements = elements->inner.data();
  if (elements->element == kString) return ValueOf(StringList());
  return Value(TensorArray());
}

Result<Value> ReadValue(const Type& type, std::string_view message) {
  switch (type.kind) {
    case Type::Kind::kTensor:
      return ReadTensor(type, message);
    case Type::Kind::kSequence:
      return ReadSequence(type, message);
    case Type::Kind::kOptional:
      return ReadOptional(type, message);
    default:
      return Unimplemented("values of type ", TypeText(type));
  }
}

// --- writing

template <typename From, typename To>
void Narrow(const Tensor& t, std::string* raw) {
  for (int64_t i = 0; i < t.numel(); ++i) {
    const auto v = static_cast<To>(static_cast<const From*>(t.raw())[i]);
    raw->append(reinterpret_cast<const char*>(&v), sizeof(v));
  }
}

std::string RawOf(const Tensor& t, int type) {
  std::string raw;
  const int bits = BitsOf(type);
  if (type == kUint16) {
    Narrow<int32_t, uint16_t>(t, &raw);
  } else if (type == kUint32) {
    Narrow<int64_t, uint32_t>(t, &raw);
  } else if (bits < 8) {
    const int per_byte = 8 / bits, mask = (1 << bits) - 1;
    raw.assign((static_cast<size_t>(t.numel()) + static_cast<size_t>(per_byte) - 1) /
                   static_cast<size_t>(per_byte),
               '\0');
    const auto* x = static_cast<const uint8_t*>(t.raw());
    for (int64_t i = 0; i < t.numel(); ++i)
      raw[static_cast<size_t>(i / per_byte)] |=
          static_cast<char>((x[i] & mask) << (i % per_byte * bits));
  } else if (t.numel() > 0) {
    raw.assign(static_cast<const char*>(t.raw()), t.bytes());
  }
  return raw;
}

void PutShape(const Shape& shape, int type, std::string* out) {
  for (int64_t d : shape) wire::AppendVarintField(1, static_cast<uint64_t>(d), out);
  wire::AppendVarintField(2, static_cast<uint64_t>(type), out);
}

Result<std::string> WriteTensor(int type, const Value& value) {
  std::string out;
  if (const auto strings = StringsIn(value)) {
    PutShape(strings->shape, kString, &out);
    for (const std::string& s : strings->elements) wire::AppendBytesField(6, s, &out);
    return out;
  }
  if (!value.is_tensor()) return InvalidArgument("holds no tensor");
  const Tensor t = value.tensor().Contiguous();
  if (StorageOf(type) != t.dtype()) type = TypeOf(t.dtype());
  if (type == kUndefinedType) return InvalidArgument("holds nothing");
  PutShape(t.shape(), type, &out);
  wire::AppendBytesField(9, RawOf(t, type), &out);
  return out;
}

Result<std::string> WriteValue(const Type& type, const Value& value) {
  if (type.kind == Type::Kind::kTensor) return WriteTensor(type.element, value);
  std::string out;
  const Type inner = type.inner.empty() ? Type{} : type.inner[0];
  if (type.kind == Type::Kind::kSequence) {
    wire::AppendVarintField(2, kIsTensor, &out);
    if (const auto texts = StringListIn(value)) {
      for (const StringTensor& t : *texts) {
        HEDDLE_ASSIGN_OR_RETURN(const std::string item, WriteTensor(kString, ValueOf(t)));
        wire::AppendBytesField(3, item, &out);
      }
      return out;
    }
    if (!value.is_array()) return InvalidArgument("holds no sequence");
    for (const Tensor& t : value.array()) {
      HEDDLE_ASSIGN_OR_RETURN(const std::string item, WriteTensor(inner.element, Value(t)));
      wire::AppendBytesField(3, item, &out);
    }
    return out;
  }
  if (type.kind != Type::Kind::kOptional) return Unimplemented("values of type ", TypeText(type));
  const bool of_sequence = inner.kind == Type::Kind::kSequence;
  if (const auto texts = StringListIn(value); texts != nullptr && !of_sequence) {
    if (texts->empty()) return out;
    HEDDLE_ASSIGN_OR_RETURN(const std::string item, WriteValue(inner, ValueOf(texts->front())));
    wire::AppendVarintField(2, kIsTensor, &out);
    wire::AppendBytesField(3, item, &out);
    return out;
  }
  if (value.is_array() && !of_sequence && value.array().empty()) return out;
  const Value held = value.is_array() && !of_sequence ? Value(value.array()[0]) : value;
  HEDDLE_ASSIGN_OR_RETURN(const std::string item, WriteValue(inner, held));
  wire::AppendVarintField(2, of_sequence ? kIsSequence : kIsTensor, &out);
  wire::AppendBytesField(of_sequence ? 5 : 3, item, &out);
  return out;
}

// Writes each row of values as one map.
Result<std::string> WriteMaps(const MapKeys& keys, const Value& value) {
  if (!value.is_tensor() || value.tensor().dtype() != DType::kF32 || value.tensor().rank() != 2)
    return InvalidArgument("holds no float32 matrix of the maps' values");
  const Tensor t = value.tensor().Contiguous();
  const size_t columns = std::max(keys.ints.size(), keys.strings.size());
  if (t.dim(1) != static_cast<int64_t>(columns))
    return InvalidArgument("has ", t.dim(1), " columns; the maps have ", columns, " keys");
  std::string out;
  wire::AppendVarintField(2, kIsMap, &out);
  for (int64_t row = 0; row < t.dim(0); ++row) {
    std::string map, values;
    wire::AppendVarintField(2, keys.strings.empty() ? kInt64 : kString, &map);
    for (int64_t key : keys.ints) wire::AppendVarintField(3, static_cast<uint64_t>(key), &map);
    for (const std::string& key : keys.strings) wire::AppendBytesField(4, key, &map);
    wire::AppendVarintField(2, kIsTensor, &values);
    for (size_t i = 0; i < columns; ++i) {
      Tensor one = Tensor::Zeros(DType::kF32, Shape());
      *one.mutable_data<float>() = t.data<float>()[row * t.dim(1) + static_cast<int64_t>(i)];
      HEDDLE_ASSIGN_OR_RETURN(const std::string item, WriteTensor(kFloat, Value(one)));
      wire::AppendBytesField(3, item, &values);
    }
    wire::AppendBytesField(5, values, &map);
    wire::AppendBytesField(6, map, &out);
  }
  return out;
}

Status Of(const char* what, const std::string& name, const Status& status) {
  return Status(status.code(), StrCat(what, " '", name, "': ", status.message()));
}

}  // namespace
}  // namespace onnx

bool IsOnnx(const Program& program) { return onnx::SourceOf(program) != nullptr; }

Result<std::vector<OnnxPort>> OnnxInputs(const Program& program) {
  const onnx::OnnxSource* source = onnx::SourceOf(program);
  if (source == nullptr) return onnx::NoModel();
  return onnx::PortsOf(program.inputs(), source->inputs());
}

Result<std::vector<OnnxPort>> OnnxOutputs(const Program& program) {
  const onnx::OnnxSource* source = onnx::SourceOf(program);
  if (source == nullptr) return onnx::NoModel();
  auto ports = onnx::PortsOf(program.outputs(), source->outputs());
  for (size_t i = 0; i < ports.size(); ++i) {
    const onnx::MapKeys* keys = source->keys(i);
    if (keys == nullptr) continue;
    ports[i].keys = keys->strings;
    ports[i].int_keys = keys->ints;
  }
  return ports;
}

Result<Value> ReadOnnxInput(const Program& program, size_t input, std::string_view message) {
  const onnx::OnnxSource* source = onnx::SourceOf(program);
  if (source == nullptr) return onnx::NoModel();
  if (input >= source->inputs().size())
    return InvalidArgument("the model has ", source->inputs().size(), " inputs, and no number ",
                           input);
  auto value = onnx::ReadValue(source->inputs()[input], message);
  if (!value.ok()) return onnx::Of("input", program.inputs()[input].name, value.status());
  return value;
}

Result<Value> ReadOnnxTensor(std::string_view message, std::string* type) {
  HEDDLE_ASSIGN_OR_RETURN(const onnx::TensorData data, onnx::ReadTensorData(message));
  *type = onnx::TypeName(data.type);
  return formats::MakeValue(data);
}

Result<std::string> WriteOnnxOutput(const Program& program, size_t output, const Value& value) {
  const onnx::OnnxSource* source = onnx::SourceOf(program);
  if (source == nullptr) return onnx::NoModel();
  if (output >= source->outputs().size())
    return InvalidArgument("the model has ", source->outputs().size(), " outputs, and no number ",
                           output);
  const onnx::MapKeys* keys = source->keys(output);
  auto message = keys != nullptr ? onnx::WriteMaps(*keys, value)
                                 : onnx::WriteValue(source->outputs()[output], value);
  if (!message.ok()) return onnx::Of("output", program.outputs()[output].name, message.status());
  return message;
}

}  // namespace heddle
