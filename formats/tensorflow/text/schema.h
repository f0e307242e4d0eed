// Fields of TensorFlow's messages by their names in the text form.
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
  kTextEntry,  // of a map from texts to texts
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
// Null: the message has no such field.
const TextField* FindTextField(Message message, std::string_view name);
// The number of an element type: of "DT_FLOAT" 1, of "DT_FLOAT_REF" 101.
std::optional<int> TypeNumber(std::string_view name);

}  // namespace heddle::tensorflow
