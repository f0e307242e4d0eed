// Runs the passes over a program.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/programs/ir.h"
#include "heddle/pass.h"
#include "passes/facts/declarations.h"
#include "passes/pass.h"
#include "passes/pipeline.h"

namespace heddle::passes {

struct Optimized {
  std::shared_ptr<const ir::Program> program;
  // New parameters; its parent is the scope the program was optimised for.
  std::shared_ptr<Scope> scope;
  // Parameters whose values are part of the program, which is outdated when one is replaced.
  std::vector<std::pair<std::string, Scope::Stamp>> used;
  // Declarations that the passes went by, where nothing else vouches for them.
  std::vector<NamedFact> claims;
  PassReport report;
};

// The place and the purpose of the result.
struct Target {
  bool source = true;                    // it can be written to a file again (ir::Program::source)
  bool host_caches = true;               // there is what PassNeeds::kHostCaches asks for
  std::vector<DeviceView> devices = {};  // none: all operators run on the host
  std::vector<NamedFact> found = {};     // instead of declarations that did not hold
  // A run that ends at a claim that does not hold may be made again (passes/facts/declarations.h).
  bool repeats = true;
};

// The result is `program` itself when no pass changes it, and no variables that share a storage
// (passes/storage_aliases.h) do. Level 0 runs custom passes of level 0 only.
Result<Optimized> Optimize(const std::shared_ptr<const ir::Program>& program,
                           const std::shared_ptr<Scope>& scope, const OptimizeOptions& options,
                           const Target& target = {});
// The same with passes and an order of the caller's instead of heddle's.
Result<Optimized> OptimizeWith(std::vector<PassDef> passes, Pipeline pipeline,
                               const std::shared_ptr<const ir::Program>& program,
                               const std::shared_ptr<Scope>& scope, const OptimizeOptions& options,
                               const Target& target = {});

}  // namespace heddle::passes
