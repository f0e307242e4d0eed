// Finding and naming the files of a model.
#pragma once

#include <string>

namespace heddle::tools {

// The combined parameter file beside a program file; "" when there is none.
std::string FindParameterFile(const std::string& program_file);
// 2006002 -> "2.6.2".
std::string VersionText(int64_t version);
// 1234567 -> "1.2 MB".
std::string BytesText(double bytes);

}  // namespace heddle::tools
