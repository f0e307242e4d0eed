// A model's local functions (heddle/functions.h).
//
// The nodes of graphs in attributes follow the node that has them. An attribute that nobody gives
// leaves a node's attribute out.
#pragma once

#include <string>
#include <vector>

#include "formats/onnx/model.h"
#include "heddle/functions.h"

namespace heddle::onnx {

// "domain.name", or "domain.name:overload", of a function and of a node that calls it.
std::string FunctionNameOf(const Function& f);
std::string CalledBy(const Node& node);

std::vector<NamedFunctionValue> ValuesOf(const std::vector<Attribute>& attributes);

// Definitions are made when they are asked for, until when the model must be there. Of two that
// have one name the first counts.
FunctionLibrary LibraryOf(const Model& model);
// With the calls of the graph counted; it keeps the bytes of the file.
Result<FunctionLibrary> LibraryOf(std::string bytes);

}  // namespace heddle::onnx
