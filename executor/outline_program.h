// The passes for a plan with functions (CompileOptions::outline).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "passes/pass_manager.h"

namespace heddle::internal {

// As passes::Optimize; then equal stretches of operators are calls of blocks
// (passes/functions/outline_functions.h). Where most of the program is equal layers, the passes see
// only some of them. `kept`: names of variables that no call may hide.
Result<passes::Optimized> OptimizeAndOutline(const std::shared_ptr<const ir::Program>& program,
                                             const std::shared_ptr<Scope>& scope,
                                             const OptimizeOptions& options,
                                             const passes::Target& target,
                                             const std::vector<std::string>& kept);

}  // namespace heddle::internal
