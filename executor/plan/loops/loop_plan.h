// LoopPlan: what a run has to know of a loop before its first turn.
#pragma once

#include "core/op_context.h"

namespace heddle {

// An instruction that runs a block as long as a condition holds, and does nothing else.
struct LoopPlan {
  uint32_t condition = kNoSlot;
  int body = 0;
  int turns = -1;        // constants say how many; -1: the condition does
  bool may_end = false;  // something that the block changes decides
  bool plain = false;    // its block has neither lanes nor lists that the run keeps
};

}  // namespace heddle
