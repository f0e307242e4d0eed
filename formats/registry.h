// The formats that heddle reads and writes.
#pragma once

#include <span>

#include "formats/program_source.h"

namespace heddle::formats {

// All of them. The first one is for what no other is responsible for: programs that were read from
// no file, and bytes that nobody recognises.
std::span<const Format* const> Formats();

// The one that the program was read from.
const Format& FormatOf(const ir::Program& program);

}  // namespace heddle::formats
