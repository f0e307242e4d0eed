// The fuzz targets of the TensorFlow reader call these with a file. A test does so with each file
// of tests/fuzz/graph and tests/fuzz/bundle.
#pragma once

#include <string_view>

#include "formats/program_source.h"
#include "formats/tensorflow/bundle.h"
#include "formats/tensorflow/format.h"

namespace heddle::testing {

// Reads what nothing in the graph uses, or what its usual signature names.
inline Status ReadGraph(std::string_view bytes) {
  ir::ProgramBuilder builder("fuzz");
  const auto source = tensorflow::TensorflowFormat().Parse(bytes, builder);
  if (!source.ok()) return source.status();
  return std::move(builder).Finish(*source).status();
}

inline Status ReadBundleIndex(std::string_view bytes) {
  return tensorflow::Bundle::ParseIndex(bytes, "fuzz").status();
}

}  // namespace heddle::testing
