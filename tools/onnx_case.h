// Cases of the ONNX test suite: a folder with model.onnx and test_data_set_0/input_<k>.pb.
#pragma once

#include <string>

#include "heddle/executor.h"

namespace heddle::tools {

bool IsOnnxCase(const std::string& directory);

// Runs the model on its inputs and writes output_<k>.pb to `out`.
Status RunOnnxCase(Executor& executor, const std::string& directory, const std::string& out,
                   CompileOptions options, const RunOptions& run);

}  // namespace heddle::tools
