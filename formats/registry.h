// The list of formats that heddle reads and writes.
#pragma once

#include <span>

#include "formats/program_source.h"

namespace heddle::formats {

// All formats. The first one is the default: for programs that were read from no file, and for
// bytes that no format recognises.
std::span<const Format* const> Formats();

// The format from which the program was read.
const Format& FormatOf(const ir::Program& program);

}  // namespace heddle::formats
