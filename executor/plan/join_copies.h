// Copies into variables that a sub-block rewrites. A loop's body usually computes the next value of
// a variable in a temporary and copies it into the variable at the end. If no operator reads the
// old value after the next one is computed, the computing operator writes the variable itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "executor/plan/block_access.h"
#include "executor/plan/plan_draft.h"

namespace heddle {

// What all blocks of a plan share, so that each takes time in proportion to itself.
struct JoinTables {
  explicit JoinTables(const Plan& plan);

  std::vector<int> placers;  // per slot, the instructions of known shapes that write it
  std::unordered_map<uint32_t, std::vector<uint32_t>> views;  // by the slot that they look at
  BlockAccess access;                                         // of sub-blocks
  size_t visits = 0;  // of instructions, by who looks at the whole program
};

// Precondition: one instruction alone runs the block; its views, and all of the blocks inside it,
// are resolved.
void JoinCopies(PlanDraft& draft, int block, JoinTables& tables);

}  // namespace heddle
