// Who writes and who reads the variables of a program, in the order in which its blocks run.
#pragma once

#include <vector>

#include "core/programs/ir.h"

namespace heddle {

struct VariableUse {
  int writes = 0;  // operators that write it, those with sub-blocks included
  // It is used other than by operators behind the first that writes it, of the same block or of
  // blocks that run within: read before, or where the writer need not have run, or used by an
  // operator for what it exchanges with its sub-block.
  bool elsewhere = false;
};

// Per variable. `run_once`, per block: exactly one operator runs it, and so do the blocks that it
// runs within.
std::vector<VariableUse> FindVariableUses(const ir::Program& program, std::vector<bool>* run_once);

}  // namespace heddle
