// Which element types the operands and outputs of TensorFlow's operators have, by their
// definitions.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/tensorflow/model.h"

namespace heddle::tensorflow {

// An attribute of a node, by its name; null where the node does not have it.
using FindAttribute = std::function<const Attribute*(std::string_view)>;

// The element type (DataType) of output `port`, counted over all of the operator's outputs, lists
// included; that behind a reference. kNoType where the operator is none of the table, or has no
// such output.
int DefinedType(std::string_view op, size_t port, const FindAttribute& find);

// How many outputs each argument of the operator's definition is, of which there are `arguments`: 1
// each, or the length of a list, as the node's attributes say; -1 where they do not, or the
// operator is none of the table.
std::vector<int> DefinedCounts(std::string_view op, size_t arguments, const FindAttribute& find);

// The element type of an input by its number, as its own operator defines it; kNoType: not known.
using InputType = std::function<int(size_t)>;
// How a node's types contradict the definition of its operator: an attribute that names a type for
// which there is no such operator, or one of the `inputs` inputs that has another type than the
// attributes say. Empty: they do not, or the operator is none of the table.
std::string FindWrongType(std::string_view op, size_t inputs, const FindAttribute& find,
                          const InputType& type_of);

// Whether input `i` holds indices, sizes or axes that may be integers of less than 32 bits.
bool TakesNarrowIndices(std::string_view op, size_t i);

}  // namespace heddle::tensorflow
