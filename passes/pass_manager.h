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
  // New parameters; its parent is the scope for which the program was optimised.
  std::shared_ptr<Scope> scope;
  // Parameters whose values are part of the program. If one is replaced, the program is outdated.
  std::vector<std::pair<std::string, Scope::Stamp>> used;
  // Declarations that the passes have assumed and that nothing else proves.
  std::vector<NamedFact> claims;
  PassReport report;
};

// Where and for what the result is used.
struct Target {
  bool source = true;                    // it may be written to a file again (ir::Program::source)
  bool host_caches = true;               // whether PassNeeds::kHostCaches is met
  std::vector<DeviceView> devices = {};  // none: all operators run on the host
  std::vector<NamedFact> found = {};     // replace declarations that did not hold
  // Whether a run that finds that a claim does not hold may be repeated
  // (passes/facts/declarations.h).
  bool repeats = true;
};

// Runs heddle's passes and the user's. The result is `program` itself if no pass changes it and it
// writes to no shared storage (passes/storage_aliases.h). Level 0 runs only custom passes of level
// 0.
Result<Optimized> Optimize(const std::shared_ptr<const ir::Program>& program,
                           const std::shared_ptr<Scope>& scope, const OptimizeOptions& options,
                           const Target& target = {});
// The same with the caller's passes and order instead of heddle's.
Result<Optimized> OptimizeWith(std::vector<PassDef> passes, Pipeline pipeline,
                               const std::shared_ptr<const ir::Program>& program,
                               const std::shared_ptr<Scope>& scope, const OptimizeOptions& options,
                               const Target& target = {});

}  // namespace heddle::passes
