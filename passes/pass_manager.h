// Runs the passes over a program.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/ir.h"

namespace heddle::passes {

struct OptimizeOptions {
  int level = 2;  // 0: the program as it is
  std::vector<std::string> fetches;
};

struct Optimized {
  std::shared_ptr<const ir::Program> program;
  // New parameters; its parent is the scope the program was optimised for.
  std::shared_ptr<Scope> scope;
  // Parameters whose values went into the program: it is out of date when one was replaced.
  std::vector<std::pair<std::string, Scope::Stamp>> used;
};

// The result is `program` itself when no pass changes it.
Result<Optimized> Optimize(const std::shared_ptr<const ir::Program>& program,
                           const std::shared_ptr<Scope>& scope, const OptimizeOptions& options);

}  // namespace heddle::passes
