// Converts graphs and SavedModels in protobuf's text form (.pbtxt) to the binary form.
#pragma once

#include <string>
#include <string_view>

#include "heddle/status.h"

namespace heddle::tensorflow {

// Whether the bytes begin as the text of a graph or of a SavedModel does.
bool LooksLikeText(std::string_view bytes);

// The message in binary form, at most five times as long as the text. kDataLoss: the text is
// malformed; the message names the line and what was expected there.
Result<std::string> BinaryFromText(std::string_view text);

}  // namespace heddle::tensorflow
