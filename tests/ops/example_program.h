// The program that runs an example.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "heddle/executor.h"
#include "tests/ops/example.h"

namespace heddle::testing {

// Where the operator finds its operands. Only memory of the run may be computed in.
enum class Operands {
  kFed,   // in the caller's memory
  kDead,  // copied into the run's memory; nobody else reads the copies
  kKept,  // likewise, but the copies are fetched after the operator
};

struct ExampleProgram {
  Program program;
  std::vector<Feed> feeds;
  // One name per output whose check is not kNothing, in order; behind them the kept copies.
  std::vector<std::string> fetches;
  // The fed values of the kept copies, in order.
  std::vector<Value> kept;
  // The variables that live in the scope, as they are at first.
  std::vector<Feed> params;
  // A scope with copies of them.
  std::shared_ptr<Scope> NewScope() const;
};

// Programs (Example::is_program) always find their variables as fed. Errors: what heddle says about
// the program.
Result<ExampleProgram> BuildProgram(const Example& example, Operands operands);

}  // namespace heddle::testing
