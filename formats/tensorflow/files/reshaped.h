// A SavedModel's graph with other shapes of some variables and outputs.
//
// Ownership: the result shares nothing with the arguments. Threads: any.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "heddle/shape.h"
#include "heddle/status.h"

namespace heddle::tensorflow {

// The bytes of `saved_model` with these shapes: of variables by name, of a signature's outputs by
// their keys (an empty one means serving_default), and of results of functions that had the shape
// of such an output. Shapes that nodes state as a hint
// (_output_shapes) are left out, since they follow from the others. kDataLoss: the bytes are
// damaged.
Result<std::string> WithShapes(std::string_view saved_model, const std::string& signature,
                               const std::map<std::string, Shape>& variables,
                               const std::map<std::string, Shape>& outputs);

// A TensorShapeProto.
std::string ShapeMessage(const Shape& shape);

}  // namespace heddle::tensorflow
