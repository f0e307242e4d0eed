// Writers and readers of a program's variables, in the order in which its blocks run.
#pragma once

#include <vector>

#include "core/programs/ir.h"

namespace heddle {

struct VariableUse {
  int writes = 0;  // operators that write it, including those that run blocks which do
  // Whether it has uses other than by operators after its first writer, in the same block or in
  // inner blocks: it is read before, the writer may not have run, or an operator exchanges it with
  // its block.
  bool elsewhere = false;
};

// The uses per variable. `run_once`, per block: whether exactly one operator runs it, and the same
// is true of the blocks in which it runs.
std::vector<VariableUse> FindVariableUses(const ir::Program& program, std::vector<bool>* run_once);

}  // namespace heddle
