// Parameters in Paddle's files: records, combined in one file or one per file, and pickles.
// Functions that write them, or that need no program, are in heddle/params.h.
#pragma once

#include <string>
#include <string_view>

#include "heddle/params.h"

namespace heddle::paddle {

// Implements heddle::LoadParameters. `cast`: floating-point tensors may be stored in another width
// than the program declares (Paddle 3's save_as_fp16) and are converted.
Status LoadParameters(const Program& program, const std::string& path, Scope& scope,
                      ParameterReading reading, bool cast = false);

// LoadParameters for the bytes of a combined file, which need not outlive the call.
Status ParseParameters(const Program& program, std::string_view bytes, Scope& scope,
                       bool cast = false);

}  // namespace heddle::paddle
