// Facts about each operator that heddle has kernels for. DescribeOp in heddle/program.h returns
// more, as text.
#pragma once

#include <string>
#include <vector>

#include "heddle/dtype.h"
#include "heddle/status.h"

namespace heddle {

struct OperatorFacts {
  std::string name;
  // The file of heddle's source tree that defines it; empty: it was added by the program that uses
  // heddle.
  std::string file;
  // The dtypes of the operand that selects the kernel; all if one kernel serves any.
  std::vector<DType> dtypes;
  // The operator that computes its gradient; empty: there is none.
  std::string gradient;
};

// kNotFound: there is no such operator. Threads: any.
Result<OperatorFacts> FactsOfOp(const std::string& type);

}  // namespace heddle
