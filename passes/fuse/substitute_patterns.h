// Chains of operators that one operator stands for.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/fuse_pattern.h"
#include "core/ir.h"
#include "passes/pass.h"

namespace heddle::passes {

// True when something was replaced. Of the patterns that fit at one place the first one is taken.
bool SubstitutePatterns(ir::Program& program, PassContext& context,
                        const std::vector<std::pair<std::string, FusePattern>>& patterns);

}  // namespace heddle::passes
