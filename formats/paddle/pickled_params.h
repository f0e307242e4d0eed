// State dicts as paddle.save pickles them; ReadPickledTensors() is in heddle/params.h.
#pragma once

#include <string>

namespace heddle::paddle {

// Whether the file begins as a pickle of protocol 2 or later does, which no record does.
bool LooksPickled(const std::string& path);

}  // namespace heddle::paddle
