// The files of examples: tests/ops/cases/<family>/<operator>.txt, where kernels/<family> has the
// operator's definition.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/ops/example.h"

namespace heddle::testing {

// The examples of the operators that one source file defines.
struct ExampleFile {
  std::string family, name;            // "activation", "relu": of kernels/activation/relu.cc
  std::vector<std::string> operators;  // that it defines
  std::vector<Example> examples;
  std::vector<std::string> errors;  // "file:line: what is wrong"
};

// By "family/name": one for each source file of an operator, with what is below `cases_dir`. A file
// that belongs to no operator, or stands in another family's folder, has an error to say so.
// Threads: any.
std::map<std::string, ExampleFile> ReadExampleFiles(const std::string& cases_dir);

// All of them, of heddle's source tree.
std::map<std::string, ExampleFile> ReadExampleFiles();

}  // namespace heddle::testing
