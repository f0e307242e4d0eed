// The fuzz targets of the TensorFlow reader call these with a file. A test does so with each file
// of tests/fuzz/graph, tests/fuzz/text and tests/fuzz/bundle.
#pragma once

#include <string_view>

#include "formats/program_source.h"
#include "formats/tensorflow/bundle/bundle.h"
#include "formats/tensorflow/format.h"
#include "formats/tensorflow/text/form.h"
#include "formats/wire_fields.h"

namespace heddle::testing {

// Reads what nothing in the graph uses, or what its usual signature names.
inline Status ReadGraph(std::string_view bytes) {
  ir::ProgramBuilder builder("fuzz");
  const auto source = tensorflow::TensorflowFormat().Parse({.bytes = bytes, .builder = builder});
  if (!source.ok()) return source.status();
  return std::move(builder).Finish(*source).status();
}

// Besides, what the text becomes is a message, and not much longer than the text.
inline Status ReadText(std::string_view bytes) {
  const auto binary = tensorflow::BinaryFromText(bytes);
  if (!binary.ok()) return binary.status();
  if (binary->size() > 5 * bytes.size()) return Internal("the binary form is too long");
  wire::Fields fields(*binary);
  wire::Field field;
  while (!fields.done())
    if (!fields.Next(&field)) return Internal("the binary form is no message");
  return Status::Ok();
}

inline Status ReadBundleIndex(std::string_view bytes) {
  return tensorflow::Bundle::ParseIndex(bytes, "fuzz", tensorflow::Bundle::Checksums::kIgnored)
      .status();
}

}  // namespace heddle::testing
