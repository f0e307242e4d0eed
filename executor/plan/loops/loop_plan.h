// LoopPlan: what a run must know about a loop before its first iteration.
#pragma once

#include "core/bound_op.h"

namespace heddle {

// An instruction that runs a block as long as a condition holds, and does nothing else.
struct LoopPlan {
  uint32_t condition = kNoSlot;
  int body = 0;
  int turns = -1;  // number of iterations, if constants determine it; -1: the condition decides
  bool may_end = false;  // the block can change the condition
  bool plain = false;    // its block has no lanes
};

}  // namespace heddle
