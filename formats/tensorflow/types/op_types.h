// Which element types the operands and outputs of TensorFlow's operators have, by their
// definitions.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

#include "formats/tensorflow/model.h"

namespace heddle::tensorflow {

// An attribute of a node, by its name; null where the node does not have it.
using FindAttribute = std::function<const Attribute*(std::string_view)>;

// The element type (DataType) of output `port`, counted over all of the operator's outputs, lists
// included; that behind a reference. kNoType where the operator is none of the table, or has no
// such output.
int DefinedType(std::string_view op, size_t port, const FindAttribute& find);

// Whether input `i` holds indices, sizes or axes that may be integers of less than 32 bits.
bool TakesNarrowIndices(std::string_view op, size_t i);

}  // namespace heddle::tensorflow
