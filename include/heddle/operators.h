// What heddle says of each operator that it has kernels for, field by field; DescribeOp in
// heddle/program.h says more, as text.
#pragma once

#include <string>
#include <vector>

#include "heddle/dtype.h"
#include "heddle/status.h"

namespace heddle {

struct OperatorFacts {
  std::string name;
  // The file of heddle's source tree that defines it; empty for operators that an embedding program
  // added.
  std::string file;
  // Of the operand that chooses the kernel; all where there is one kernel for any.
  std::vector<DType> dtypes;
  // The operator that computes its gradient; empty where there is none.
  std::string gradient;
};

// kNotFound: there is no such operator. Threads: any.
Result<OperatorFacts> FactsOfOp(const std::string& type);

}  // namespace heddle
