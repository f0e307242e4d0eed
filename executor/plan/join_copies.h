// Removes copies into variables that a sub-block rewrites. A loop's body usually computes the next
// value of a variable in a temporary and copies it into the variable at the end. If no operator
// reads the old value after the next one is computed, the operator that computes it writes to the
// variable itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "executor/plan/block_access.h"
#include "executor/plan/plan_draft.h"

namespace heddle {

// Tables that all blocks of a plan share, so that each block takes time in proportion to its own
// size.
struct JoinTables {
  explicit JoinTables(const Plan& plan);

  std::vector<int> placers;  // per slot: number of instructions of known shapes that write it
  std::unordered_map<uint32_t, std::vector<uint32_t>> views;  // by slot: its views
  BlockAccess access;                                         // of sub-blocks
  size_t visits = 0;  // instructions visited in walks over the whole program
};

// Precondition: only one instruction runs the block, and the views of the block and of all blocks
// inside it are resolved.
void JoinCopies(PlanDraft& draft, int block, JoinTables& tables);

}  // namespace heddle
