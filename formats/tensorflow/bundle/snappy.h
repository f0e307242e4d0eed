// Blocks that Snappy has compressed.
#pragma once

#include <string>
#include <string_view>

#include "heddle/status.h"

namespace heddle::tensorflow {

// The bytes of one compressed block. kDataLoss: the block is cut short, copies from before its
// begin, or claims more bytes than it can hold. Takes memory in proportion to `block`.
Result<std::string> Uncompress(std::string_view block);

}  // namespace heddle::tensorflow
