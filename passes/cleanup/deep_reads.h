// Readers of a variable in the inner blocks of its block.
#pragma once

#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "passes/version_view.h"

namespace heddle::passes {

// Answers for the block that `view` shows; both arguments must outlive the object. The operators of
// inner blocks are visited once for all calls of Readers, and once for all replacements.
class DeepReads {
 public:
  DeepReads(ir::Program* program, const VersionView& view) : p_(*program), view_(view) {}

  // The positions of the operators of the block that read what the operator at `at` writes to `v`,
  // themselves or in blocks that they run, if all of them may read another variable instead that
  // has the same value from `at` to the last position. nullopt: there may be other readers, or
  // other writers, or the variable is found by its name.
  std::optional<std::vector<int>> Readers(ir::VarId v, int at);
  // Notes that all readers of `from`, which are at `positions`, shall read `to`; `to` may itself
  // have been replaced before.
  void Replace(const std::vector<int>& positions, ir::VarId from, ir::VarId to);
  // The variable that readers of `v` will read: `v` if it is not replaced.
  ir::VarId ReplacementOf(ir::VarId v) const;
  // Makes the replacements, which are not valid for another view. Returns whether there were any.
  bool Apply();

 private:
  bool IsHanded(ir::VarId v);

  ir::Program& p_;
  const VersionView& view_;
  bool listed_ = false;                   // whether `handed_` is known
  std::unordered_set<ir::VarId> handed_;  // exchanged with a block, or found by name
  std::unordered_map<ir::VarId, ir::VarId> replaced_;
  std::unordered_set<int> positions_;  // of operators with operands to replace
};

// Whether the program has gradient blocks. These find the variables of their forward blocks by
// name, so that variables of several blocks must not be replaced.
bool HasGradientBlocks(const ir::Program& program);

}  // namespace heddle::passes
