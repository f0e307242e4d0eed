#include "formats/tensorflow/functions/values.h"

#include <bit>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "formats/wire_fields.h"

namespace heddle::tensorflow {
namespace {

using wire::Field;
using wire::Fields;
using ValueKind = FunctionValue::Kind;

// Field numbers of AttrValue and of its ListValue.
enum FieldNumber : uint32_t {
  kListField = 1,
  kStringField = 2,
  kIntField = 3,
  kFloatField = 4,
  kBoolField = 5,
  kTypeField = 6,
  kShapeField = 7,
  kTensorField = 8,
  kPlaceholderField = 9,  // in a list: functions
  kFunctionField = 10
};

double FloatOf(std::string_view bytes) {
  float value = 0;
  std::memcpy(&value, bytes.data(), sizeof(value));
  return double{value};
}

FunctionValue NumberOf(uint32_t field, int64_t number) {
  FunctionValue value;
  value.kind = field == kIntField    ? ValueKind::kInt
               : field == kBoolField ? ValueKind::kBool
                                     : ValueKind::kType;
  value.i = value.kind == ValueKind::kBool ? number != 0 : number;
  return value;
}

FunctionValue TextOf(ValueKind kind, std::string_view text) {
  FunctionValue value;
  value.kind = kind;
  value.text = text;
  return value;
}

FunctionValue MessageOf(uint32_t field, std::string_view bytes) {
  FunctionValue value = TextOf(ValueKind::kMessage, field == kShapeField ? "shape" : "tensor");
  value.message = bytes;
  return value;
}

FunctionValue ReadValue(std::string_view message);

// ReadModel has parsed these bytes once, so nothing here is damaged or nested too deep.
FunctionValue ReadFunctionValue(std::string_view message) {
  FunctionValue value;
  value.kind = ValueKind::kFunction;
  Fields fields(message);
  Field f, e;
  while (!fields.done() && fields.Next(&f)) {
    if (f.Is(1)) value.text = f.payload;
    if (!f.Is(2)) continue;
    NamedFunctionValue& entry = value.attributes.emplace_back();
    Fields parts(f.payload);
    while (!parts.done() && parts.Next(&e)) {
      if (e.Is(1)) entry.name = e.payload;
      if (e.Is(2)) entry.value = ReadValue(e.payload);
    }
  }
  return value;
}

void ReadItems(const Field& f, std::vector<FunctionValue>* items) {
  const bool is_number = f.number == kIntField || f.number == kBoolField || f.number == kTypeField;
  if (is_number && f.wire_type == Field::kVarint) {
    items->push_back(NumberOf(f.number, f.integer()));
  } else if (is_number) {  // packed
    uint64_t v = 0;
    for (std::string_view rest = f.payload; !rest.empty() && wire::TakeVarint(&rest, &v);)
      items->push_back(NumberOf(f.number, static_cast<int64_t>(v)));
  } else if (f.number == kFloatField) {
    for (size_t i = 0; i + sizeof(float) <= f.payload.size(); i += sizeof(float)) {
      items->emplace_back().kind = ValueKind::kFloat;
      items->back().f = FloatOf(f.payload.substr(i));
    }
  } else if (f.number == kStringField) {
    items->push_back(TextOf(ValueKind::kString, f.payload));
  } else if (f.number == kShapeField || f.number == kTensorField) {
    items->push_back(MessageOf(f.number, f.payload));
  } else if (f.number == kPlaceholderField) {
    items->push_back(ReadFunctionValue(f.payload));
  }
}

FunctionValue ReadValue(std::string_view message) {
  FunctionValue value;
  Fields fields(message);
  Field f;
  while (!fields.done() && fields.Next(&f)) {
    switch (f.number) {
      case kListField: {
        value.kind = ValueKind::kList;
        Fields items(f.payload);
        Field item;
        while (!items.done() && items.Next(&item)) ReadItems(item, &value.items);
        break;
      }
      case kStringField:
        value = TextOf(ValueKind::kString, f.payload);
        break;
      case kIntField:
      case kBoolField:
      case kTypeField:
        value = NumberOf(f.number, f.integer());
        break;
      case kFloatField:
        value.kind = ValueKind::kFloat;
        if (f.payload.size() >= sizeof(float)) value.f = FloatOf(f.payload);
        break;
      case kShapeField:
      case kTensorField:
        value = MessageOf(f.number, f.payload);
        break;
      case kPlaceholderField:
        value = TextOf(ValueKind::kPlaceholder, f.payload);
        break;
      case kFunctionField:
        value = ReadFunctionValue(f.payload);
        break;
      default:
        break;
    }
  }
  return value;
}

std::string EncodeFunction(const FunctionValue& value) {
  std::string out;
  wire::AppendBytesField(1, value.text, &out);
  for (const NamedFunctionValue& a : value.attributes) {
    std::string entry;
    wire::AppendBytesField(1, a.name, &entry);
    wire::AppendBytesField(2, EncodeValue(a.value), &entry);
    wire::AppendBytesField(2, entry, &out);
  }
  return out;
}

// Appends a value, as an AttrValue's field or, with `in_list`, as a ListValue's.
void AppendValue(const FunctionValue& value, bool in_list, std::string* out) {
  switch (value.kind) {
    case ValueKind::kNone:
      return;
    case ValueKind::kBool:
      return wire::AppendVarintField(kBoolField, static_cast<uint64_t>(value.i), out);
    case ValueKind::kInt:
      return wire::AppendVarintField(kIntField, static_cast<uint64_t>(value.i), out);
    case ValueKind::kType:
      return wire::AppendVarintField(kTypeField, static_cast<uint64_t>(value.i), out);
    case ValueKind::kFloat: {
      const auto f = static_cast<float>(value.f);
      wire::AppendVarint(kFloatField << 3 | Field::kFixed32, out);
      out->append(reinterpret_cast<const char*>(&f), sizeof(f));
      return;
    }
    case ValueKind::kString:
      return wire::AppendBytesField(kStringField, value.text, out);
    case ValueKind::kFunction:
      return wire::AppendBytesField(in_list ? kPlaceholderField : kFunctionField,
                                    EncodeFunction(value), out);
    case ValueKind::kPlaceholder:
      return wire::AppendBytesField(kPlaceholderField, value.text, out);
    case ValueKind::kMessage:
      return wire::AppendBytesField(value.text == "shape" ? kShapeField : kTensorField,
                                    value.message, out);
    case ValueKind::kList: {
      std::string list;
      for (const FunctionValue& item : value.items) AppendValue(item, true, &list);
      return wire::AppendBytesField(kListField, list, out);
    }
  }
}

}  // namespace

FunctionValue ValueOf(const Attribute& attribute) { return ReadValue(attribute.message); }

std::vector<NamedFunctionValue> ValuesOf(const std::vector<Attribute>& attributes) {
  std::vector<NamedFunctionValue> values;
  values.reserve(attributes.size());
  for (const Attribute& a : attributes) values.push_back({std::string(a.name), ValueOf(a)});
  return values;
}

std::string EncodeValue(const FunctionValue& value) {
  std::string out;
  AppendValue(value, false, &out);
  return out;
}

Result<Attribute> AttributeOf(const NamedFunctionValue& value, std::deque<std::string>* held) {
  Attribute a;
  if (value.value.kind == ValueKind::kMessage && value.value.text == "tensor") {
    a.kind = Attribute::kTensor;
    HEDDLE_ASSIGN_OR_RETURN(TensorData data, ReadTensorData(value.value.message));
    a.tensor = std::make_shared<const TensorData>(std::move(data));
  } else {
    HEDDLE_RETURN_IF_ERROR(ParseAttribute(held->emplace_back(EncodeValue(value.value)), &a));
  }
  a.name = held->emplace_back(value.name);
  return a;
}

}  // namespace heddle::tensorflow
