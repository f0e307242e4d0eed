// Graphs and SavedModels in protobuf's text form (.pbtxt), turned into the bytes of the binary one.
#pragma once

#include <string>
#include <string_view>

#include "heddle/status.h"

namespace heddle::tensorflow {

// Whether the bytes begin as the text of a graph or of a SavedModel does.
bool LooksLikeText(std::string_view bytes);

// The message in binary form, at most five times as long as the text.
// kDataLoss: no such text; the message says in which line, and what was expected there.
Result<std::string> BinaryFromText(std::string_view text);

}  // namespace heddle::tensorflow
