#include "formats/registry.h"

#ifndef HEDDLE_WITHOUT_ONNX
#include "formats/onnx/format.h"
#endif
#include "formats/paddle/format.h"
#ifndef HEDDLE_WITHOUT_PIR
#include "formats/pir/format.h"
#endif
#ifndef HEDDLE_WITHOUT_TENSORFLOW
#include "formats/tensorflow/format.h"
#endif

namespace heddle::formats {

std::span<const Format* const> Formats() {
  static const Format* const kAll[] = {
      &paddle::ProgramDescFormat(),  // .pdmodel
#ifndef HEDDLE_WITHOUT_PIR
      &pir::PirFormat(),  // .json
#endif
#ifndef HEDDLE_WITHOUT_ONNX
      &onnx::OnnxFormat(),  // .onnx
#endif
#ifndef HEDDLE_WITHOUT_TENSORFLOW
      &tensorflow::TensorflowFormat(),  // .pb
#endif
  };
  return kAll;
}

const Format& FormatOf(const ir::Program& program) {
  return program.source ? program.source->format() : *Formats()[0];
}

}  // namespace heddle::formats
