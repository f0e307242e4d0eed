// Files that hold one JSON object. Not installed.
#pragma once

#include <string>

#include "heddle/status.h"
#include "tools/json_output.h"

namespace heddle::tools {

// `command`: which prints such files, as in "plan". kNotFound; kInvalidArgument where the file
// holds no object, or lists and objects in each other more than a hundred levels deep.
Result<Json> ReadJsonObject(const std::string& path, const std::string& command);

}  // namespace heddle::tools
