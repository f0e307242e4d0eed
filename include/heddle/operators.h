// Facts about each operator that heddle has kernels for, and about the operators of a program.
// DescribeOp in heddle/program.h returns more, as text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heddle/dtype.h"
#include "heddle/program.h"
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

// What operators of a program are for in a training step, as Paddle's attributes op_role and
// op_role_var say it.
struct OpRoleCount {
  // 0: forward; 1: backward; 2: optimizer; 16: learning rate; 256: the loss; also sums of these.
  int64_t role = 0;
  int operators = 0;
  // Of these operators, in the order of the program: a parameter, its gradient, the next parameter,
  // …
  std::vector<std::string> pairs;
};
// The roles that occur, ascending, over all blocks. Feeds and fetches are not counted. Threads:
// any.
std::vector<OpRoleCount> OpRolesOf(const Program& program);

// "forward", "backward", "backward, loss", …
std::string OpRoleText(int64_t role);

}  // namespace heddle
