// The fuzz target of the ONNX reader calls this with a file. A test does so with each file of
// tests/fuzz/onnx.
#pragma once

#include <string_view>

#include "formats/onnx/format.h"
#include "formats/program_source.h"

namespace heddle::testing {

// Reads the program. The error is that of the reader or of the program's checks.
inline Status ReadOnnx(std::string_view bytes) {
  ir::ProgramBuilder builder("fuzz");
  const auto source = onnx::OnnxFormat().Parse({.bytes = bytes, .builder = builder});
  if (!source.ok()) return source.status();
  return std::move(builder).Finish(*source).status();
}

}  // namespace heddle::testing
