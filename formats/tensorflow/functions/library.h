// The functions of a graph's library as a FunctionLibrary (heddle/functions.h).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "formats/tensorflow/model.h"
#include "formats/tensorflow/node_graph.h"
#include "heddle/functions.h"

namespace heddle::tensorflow {

inline constexpr char kFormatName[] = "tensorflow";

// Definitions are made on request, so the model must outlive the library. Of two functions of one
// name the first counts.
FunctionLibrary LibraryOf(const Model& model);
// The same with the graph's calls counted. The library keeps what it needs of the file's bytes.
Result<FunctionLibrary> LibraryOf(std::string bytes, std::string_view signature);

// The outputs that `argument` names of a node in the body, by the definition of its operator or by
// the signature of the function that it calls. Nothing: there is no such argument.
std::optional<OutputRange> OutputsOf(FunctionLibrary* library, const FunctionBody& in,
                                     const FunctionNode& node, std::string_view argument);

}  // namespace heddle::tensorflow
