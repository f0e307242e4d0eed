// Converts attributes of nodes to values of functions (heddle/functions.h), and back.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "formats/tensorflow/model.h"
#include "heddle/functions.h"
#include "heddle/status.h"

namespace heddle::tensorflow {

// Tensors and shapes keep referring to the attribute's bytes.
FunctionValue ValueOf(const Attribute& attribute);
std::vector<NamedFunctionValue> ValuesOf(const std::vector<Attribute>& attributes);
// The bytes of an AttrValue.
std::string EncodeValue(const FunctionValue& value);
// Makes the attribute for a value. Its bytes go into `held`, except those of a tensor or a shape.
Result<Attribute> AttributeOf(const NamedFunctionValue& value, std::deque<std::string>* held);

}  // namespace heddle::tensorflow
