// The fields of TensorFlow's messages, by their names in the text form.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace heddle::tensorflow {

enum class Message : uint8_t {
  kGraph,
  kNode,
  kAttributeEntry,
  kAttribute,
  kAttributeList,
  kFunctionName,
  kShape,
  kDimension,
  kTensor,
  kLibrary,
  kFunction,
  kTextEntry,  // an entry of a map from strings to strings
  kOpDef,
  kArgument,
  kDeclaredAttribute,
  kVersions,
  kSavedModel,
  kMetaGraph,
  kMetaInfo,
  kSaver,
  kSignatureEntry,
  kSignature,
  kTensorEntry,
  kTensorInfo,
};

struct TextField {
  enum Kind : uint8_t {
    kInt32,
    kInt64,
    kUint32,
    kUint64,
    kBool,
    kFloat,
    kDouble,
    kBytes,
    kType,
    kMessage,
    kUnused
  };
  std::string_view name;
  uint32_t number = 0;
  Kind kind = kUnused;  // kUnused: heddle does not read it
  Message message = Message::kGraph;
};

// TensorFlow's name of a message.
std::string_view NameOf(Message message);
// The field of this name; null: the message has none.
const TextField* FindTextField(Message message, std::string_view name);
// The number of an element type: 1 for "DT_FLOAT", 101 for "DT_FLOAT_REF".
std::optional<int> TypeNumber(std::string_view name);

}  // namespace heddle::tensorflow
