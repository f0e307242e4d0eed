// Writes functions of TensorFlow that have attributes, byte by byte.
#pragma once

#include <string>
#include <vector>

#include "tests/formats/tensorflow/graph_bytes.h"

namespace heddle::testing::tf {

inline Message PlaceholderValue(std::string_view name) { return Message().Bytes(9, name); }
inline Message FloatValue(float value) { return Message().Float(4, value); }
inline Message TypesValue(const std::vector<int>& types) {
  Message list;
  for (int type : types) list.Int(6, type);
  return Message().Add(1, list);
}
inline Message FunctionValue(std::string_view name, const NamedValues& attributes) {
  Message function;
  function.Bytes(1, name);
  for (const auto& [key, value] : attributes)
    function.Add(2, Message().Bytes(1, key).Add(2, value));
  return Message().Add(10, function);
}

struct Argument {
  std::string name, type_attribute, number, from;
};
struct Attribute {
  std::string name, type;
  Message default_value;  // empty: none
};

inline Message DefinitionOf(const std::string& name, const std::vector<Argument>& inputs,
                            const std::vector<Argument>& outputs,
                            const std::vector<Attribute>& attributes,
                            const std::vector<Message>& nodes) {
  Message signature, function;
  signature.Bytes(1, name);
  const auto argument = [](const Argument& a) {
    Message m;
    m.Bytes(1, a.name);
    if (a.type_attribute.empty())
      m.Int(3, kF);
    else
      m.Bytes(4, a.type_attribute);
    if (!a.number.empty()) m.Bytes(5, a.number);
    return m;
  };
  for (const Argument& a : inputs) signature.Add(2, argument(a));
  for (const Argument& a : outputs) signature.Add(3, argument(a));
  for (const Attribute& a : attributes) {
    Message declared;
    declared.Bytes(1, a.name).Bytes(2, a.type);
    if (!a.default_value.bytes().empty()) declared.Add(3, a.default_value);
    signature.Add(4, declared);
  }
  function.Add(1, signature);
  for (const Message& node : nodes) function.Add(3, node);
  for (const Argument& a : outputs) function.Add(4, Message().Bytes(1, a.name).Bytes(2, a.from));
  return function;
}

}  // namespace heddle::testing::tf
