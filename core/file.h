// Whole files, read and replaced.
#pragma once

#include <string>
#include <string_view>

#include "heddle/status.h"

namespace heddle {

Result<std::string> ReadFile(const std::string& path);
// Writes beside `path`, flushes to disk and renames: a reader sees the old or the new file whole.
Status ReplaceFile(const std::string& path, std::string_view bytes);

}  // namespace heddle
