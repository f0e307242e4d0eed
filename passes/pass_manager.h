// Runs the passes over a program.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/ir.h"
#include "heddle/pass.h"
#include "passes/pass.h"

namespace heddle::passes {

struct Optimized {
  std::shared_ptr<const ir::Program> program;
  // New parameters; its parent is the scope the program was optimised for.
  std::shared_ptr<Scope> scope;
  // Parameters whose values went into the program: it is out of date when one was replaced.
  std::vector<std::pair<std::string, Scope::Stamp>> used;
  PassReport report;
};

// The result is `program` itself when no pass changes it. Level 0 runs custom passes of level 0
// only. Without `source` it is not there to be written to a file again (ir::Program::source).
Result<Optimized> Optimize(const std::shared_ptr<const ir::Program>& program,
                           const std::shared_ptr<Scope>& scope, const OptimizeOptions& options,
                           bool source = true);
// The same with a list of passes of the caller's instead of the registered ones, in any order.
Result<Optimized> OptimizeWith(std::vector<PassDef> passes,
                               const std::shared_ptr<const ir::Program>& program,
                               const std::shared_ptr<Scope>& scope, const OptimizeOptions& options,
                               bool source = true);

}  // namespace heddle::passes
