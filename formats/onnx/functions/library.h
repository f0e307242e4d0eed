// A model's local functions as a FunctionLibrary (heddle/functions.h).
//
// Nodes of graphs in attributes follow the node that has the attribute. A node's attribute that
// refers to an attribute of the call is left out where the call does not give it.
#pragma once

#include <string>
#include <vector>

#include "formats/onnx/model.h"
#include "heddle/functions.h"

namespace heddle::onnx {

// The name "domain.name", or "domain.name:overload", of a function and of the function that a node
// calls.
std::string FunctionNameOf(const Function& f);
std::string CalledBy(const Node& node);

std::vector<NamedFunctionValue> ValuesOf(const std::vector<Attribute>& attributes);

// Definitions are made on request, so the model must outlive the library. Of two functions of one
// name the first counts.
FunctionLibrary LibraryOf(const Model& model);
// The same with the graph's calls counted. The library keeps the file's bytes.
Result<FunctionLibrary> LibraryOf(std::string bytes);

}  // namespace heddle::onnx
