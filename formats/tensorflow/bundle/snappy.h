// Uncompresses Snappy's blocks.
#pragma once

#include <string>
#include <string_view>

#include "heddle/status.h"

namespace heddle::tensorflow {

// Uncompresses one block. kDataLoss: it is cut short, copies from before its begin, or claims a
// size that it cannot have. Allocates in proportion to `block`.
Result<std::string> Uncompress(std::string_view block);

}  // namespace heddle::tensorflow
