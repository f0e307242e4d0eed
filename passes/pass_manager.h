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

namespace heddle {
struct CompileOptions;
struct ExecutorOptions;
}  // namespace heddle

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
  // What passes of POST_PARTITIONING are told (heddle/passes/partitions.h).
  const CompileOptions* compile_options = nullptr;
  const ExecutorOptions* executor_options = nullptr;
  // Targets have groups, and the caller runs the passes on them (passes/partitions/partitions.h).
  bool groups = false;
};

// Adds the users' passes to `passes` and their names to `pipeline`, and leaves those that will run
// at this level; an error for a pass without a function, and for a name that no pass or two passes
// have.
Status ChoosePasses(const OptimizeOptions& options, const Target& target,
                    std::vector<PassDef>* passes, Pipeline* pipeline);

// The result is `program` itself when no pass changes it, and no variables that share a storage
// (passes/storage_aliases.h) do. Level 0 runs custom passes of level 0 only.
Result<Optimized> Optimize(const std::shared_ptr<const ir::Program>& program,
                           const std::shared_ptr<Scope>& scope, const OptimizeOptions& options,
                           const Target& target = {});
// The same with the caller's passes and order instead of heddle's.
Result<Optimized> OptimizeWith(std::vector<PassDef> passes, Pipeline pipeline,
                               const std::shared_ptr<const ir::Program>& program,
                               const std::shared_ptr<Scope>& scope, const OptimizeOptions& options,
                               const Target& target = {});

}  // namespace heddle::passes
