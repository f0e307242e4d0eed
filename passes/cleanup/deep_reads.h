// Readers of a variable in blocks that the operators of its block run.
#pragma once

#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "passes/version_view.h"

namespace heddle::passes {

// It answers for the block that `view` shows; both arguments must outlive the object. The operators
// of the blocks inside are gone through once for all questions, and once for all replacements.
class DeepReads {
 public:
  DeepReads(ir::Program* program, const VersionView& view) : p_(*program), view_(view) {}

  // The positions of the operators of the block which read what the one at `at` writes to `v`,
  // themselves or in blocks that they run, when all of these may read another variable of the same
  // value instead: one that is the same at the last position as at `at`. nullopt: somebody else may
  // read it, it is written elsewhere, or goes by its name.
  std::optional<std::vector<int>> Readers(ir::VarId v, int at);
  // All readers of `from`, which are at `positions`, will read `to`. `to` may be replaced, too, if
  // that has been said before.
  void Replace(const std::vector<int>& positions, ir::VarId from, ir::VarId to);
  // The variable that readers of `v` will read.
  ir::VarId ReplacementOf(ir::VarId v) const;
  // Does what Replace() was told. Replacements are of no use to another view. False: there are
  // none.
  bool Apply();

 private:
  bool IsHanded(ir::VarId v);

  ir::Program& p_;
  const VersionView& view_;
  bool listed_ = false;                   // whether `handed_` is known
  std::unordered_set<ir::VarId> handed_;  // exchanged with a block, or gone by its name
  std::unordered_map<ir::VarId, ir::VarId> replaced_;
  std::unordered_set<int> positions_;  // of operators with operands to replace
};

// Gradients find the variables of their forward blocks by name: where a program has any, variables
// of several blocks are left alone.
bool HasGradientBlocks(const ir::Program& program);

}  // namespace heddle::passes
