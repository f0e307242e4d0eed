// Runs one operator case.
#pragma once

#include <string>

#include "heddle/executor.h"

namespace heddle::tools {

// Reads the case in `directory`, one of heddle's, of the ONNX test suite or of a TensorFlow graph,
// runs its program once and writes its outputs to `out`. `options` apply but for the fetches, which
// the case names. A failed case leaves no outputs.
Status RunOneCase(Executor& executor, const std::string& directory, const std::string& out,
                  CompileOptions options, const RunOptions& run = {});

// Removes what an unfinished case has written to `out`.
void RemoveOutputs(const std::string& out);

}  // namespace heddle::tools
