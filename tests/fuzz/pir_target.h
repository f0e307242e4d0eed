// What the fuzz target of the PIR reader does with a file. A test does the same with each file of
// tests/fuzz/pir.
#pragma once

#include <string_view>

#include "formats/pir/format.h"
#include "formats/program_source.h"

namespace heddle::testing {

// Reads the program, as far as it goes. The status of what went wrong.
inline Status ReadPir(std::string_view bytes) {
  ir::ProgramBuilder builder("fuzz");
  const auto source = pir::PirFormat().Parse(bytes, builder);
  if (!source.ok()) return source.status();
  return std::move(builder).Finish(*source).status();
}

}  // namespace heddle::testing
