// The functions of a graph's library (heddle/functions.h).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "formats/tensorflow/model.h"
#include "formats/tensorflow/node_graph.h"
#include "heddle/functions.h"

namespace heddle::tensorflow {

inline constexpr char kFormatName[] = "tensorflow";

// Definitions are made when they are asked for, until when the model must be there. Of two that
// have one name the first counts.
FunctionLibrary LibraryOf(const Model& model);
// With the calls of the graph counted; it keeps what it needs of these bytes of a file.
Result<FunctionLibrary> LibraryOf(std::string bytes, std::string_view signature);

// The outputs of a node of the body that an argument has the name of: in the definition of its
// operator, or in the signature of the function that it calls. Nothing: it has none.
std::optional<OutputRange> OutputsOf(FunctionLibrary* library, const FunctionBody& in,
                                     const FunctionNode& node, std::string_view argument);

}  // namespace heddle::tensorflow
