// Runs the passes over a program.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/ir.h"

namespace heddle::passes {

struct OptimizeOptions {
  int level = 2;  // 0: the program as it is
  std::vector<std::string> fetches;
};

// The rewritten program. New parameters that passes fold are put into `scope` under fresh names.
Result<std::shared_ptr<const ir::Program>> Optimize(const ir::Program& program, Scope& scope,
                                                    const OptimizeOptions& options);

}  // namespace heddle::passes
