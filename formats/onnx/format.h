// The Format of ONNX models, which hold their own weights.
#pragma once

#include "formats/program_source.h"

namespace heddle::onnx {

const formats::Format& OnnxFormat();

}  // namespace heddle::onnx
