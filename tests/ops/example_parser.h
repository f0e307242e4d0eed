// Reads the text of a file of examples. docs/examples.md describes it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "heddle/status.h"
#include "tests/ops/example.h"

namespace heddle::testing {

// `text`: that of the operator's file; its first character stands in line `line` of `file`.
// Errors: the first one, as "file:line: what is wrong".
Result<std::vector<Example>> ParseExamples(const std::string& op, std::string_view text,
                                           const std::string& file, int line);

}  // namespace heddle::testing
