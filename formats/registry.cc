#include "formats/registry.h"

#include "formats/onnx/format.h"
#include "formats/paddle/format.h"
#include "formats/pir/format.h"

namespace heddle::formats {

std::span<const Format* const> Formats() {
  static const Format* const kAll[] = {
      &paddle::ProgramDescFormat(),  // .pdmodel
      &pir::PirFormat(),             // .json
      &onnx::OnnxFormat(),           // .onnx
  };
  return kAll;
}

const Format& FormatOf(const ir::Program& program) {
  return program.source ? program.source->format() : *Formats()[0];
}

}  // namespace heddle::formats
