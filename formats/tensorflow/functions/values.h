// Attributes of nodes as values of functions (heddle/functions.h), and back.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "formats/tensorflow/model.h"
#include "heddle/functions.h"
#include "heddle/status.h"

namespace heddle::tensorflow {

// Tensors and shapes stay in the bytes that the attribute was read from.
FunctionValue ValueOf(const Attribute& attribute);
std::vector<NamedFunctionValue> ValuesOf(const std::vector<Attribute>& attributes);
// The bytes of an AttrValue.
std::string EncodeValue(const FunctionValue& value);
// The attribute that a reader of nodes finds for this value. Its bytes go into `held`, but for
// those of a tensor or a shape.
Result<Attribute> AttributeOf(const NamedFunctionValue& value, std::deque<std::string>* held);

}  // namespace heddle::tensorflow
