// Readers of a variable in blocks that the operators of its block run.
#pragma once

#include <optional>
#include <vector>

#include "passes/version_view.h"

namespace heddle::passes {

// The positions of the operators of the block that `view` shows which read what the one at `at`
// writes to `v`, themselves or in blocks that they run, when all of these may read another variable
// of the same value instead: one that is the same at the last position as at `at`. nullopt:
// somebody else may read it, it is written elsewhere, or goes by its name.
std::optional<std::vector<int>> DeepReaders(const ir::Program& program, const VersionView& view,
                                            ir::VarId v, int at);
// They read `to` instead.
void ReplaceDeepReads(ir::Program* program, int block, const std::vector<int>& positions,
                      ir::VarId from, ir::VarId to);
// Gradients find the variables of their forward blocks by name: where a program has any, variables
// of several blocks are left alone.
bool HasGradientBlocks(const ir::Program& program);

}  // namespace heddle::passes
