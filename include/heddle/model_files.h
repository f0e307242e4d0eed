// Finds the files of a model.
#pragma once

#include <string>

#include "heddle/status.h"

namespace heddle {

// The program file that LoadModel reads for `path`: itself, or what lies in a directory. kNotFound:
// there is none; kInvalidArgument: several, and none is called as program files usually are.
Result<std::string> FindProgramFile(const std::string& path);

// The parameters that LoadModel reads with a program file when the user names none: a file or a
// directory, which may not be there.
std::string DefaultParameters(const std::string& program_file);

}  // namespace heddle
