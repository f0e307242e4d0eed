// Parameters in Paddle's files: records, combined in one file or one file each, and pickles. The
// functions that write them, and those that know of no program, are in heddle/params.h.
#pragma once

#include <string>

#include "heddle/params.h"

namespace heddle::paddle {

// heddle::LoadParameters.
Status LoadParameters(const Program& program, const std::string& path, Scope& scope,
                      ParameterReading reading);

}  // namespace heddle::paddle
