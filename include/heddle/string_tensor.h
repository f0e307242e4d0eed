// Strings with a shape, and lists of them: the contents of a variable whose elements are strings
// (Value::Kind::kOther). Numeric operators never get one; operators on strings take it out of their
// operand.
//
// Ownership: values share the strings, which are immutable. Threads: as for Value.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "heddle/value.h"

namespace heddle {

struct StringTensor {
  Shape shape;
  std::vector<std::string> elements;  // row-major, any bytes
};

// A sequence of tensors of strings, which may differ in shape.
using StringList = std::vector<StringTensor>;

// The strings in `value`; nullptr: it holds something else.
inline std::shared_ptr<const StringTensor> StringsIn(const Value& value) {
  if (value.kind() != Value::Kind::kOther || !value.initialized()) return nullptr;
  Value copy = value;
  const auto* strings = std::any_cast<std::shared_ptr<const StringTensor>>(&copy.mutable_other());
  return strings == nullptr ? nullptr : *strings;
}

inline Value ValueOf(StringTensor strings) {
  Value value;
  value.mutable_other() = std::make_shared<const StringTensor>(std::move(strings));
  return value;
}

// The same for lists.
inline std::shared_ptr<const StringList> StringListIn(const Value& value) {
  if (value.kind() != Value::Kind::kOther || !value.initialized()) return nullptr;
  Value copy = value;
  const auto* list = std::any_cast<std::shared_ptr<const StringList>>(&copy.mutable_other());
  return list == nullptr ? nullptr : *list;
}

inline Value ValueOf(StringList list) {
  Value value;
  value.mutable_other() = std::make_shared<const StringList>(std::move(list));
  return value;
}

}  // namespace heddle
