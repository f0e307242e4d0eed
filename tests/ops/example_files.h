// The HEDDLE_EXAMPLES blocks of the source files below kernels/.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/status.h"
#include "tests/ops/example.h"

namespace heddle::testing {

// A source file below kernels/, without what "<file>_examples.cc" adds to the name.
struct ExampleFile {
  std::string family, name;            // "activation", "relu"
  std::vector<std::string> operators;  // that its HEDDLE_OP lines define
  std::vector<Example> examples;
  std::vector<std::string> errors;  // "file:line: what is wrong"
};

// Those with operators or examples, by "family/name".
std::map<std::string, ExampleFile> ReadExampleFiles(const std::string& kernels_dir);

// The blocks of one source text, appended to *file.
void ReadExampleBlocks(const std::string& source, const std::string& path, ExampleFile* file);

}  // namespace heddle::testing
