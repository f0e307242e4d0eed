// Which instructions must wait for which.
//
// From the slots an instruction reads and writes (those of the blocks it runs included): read after
// write, write after read, write after write; and from declared traits: random operators among each
// other, side effects, communication, readers first. Edges implied by others are dropped.
#pragma once

#include <cstdint>
#include <vector>

#include "executor/plan.h"

namespace heddle {

struct DependencyGraph {
  // Compressed rows: the successors of i are edges[begin[i] .. begin[i+1]), all greater than i.
  std::vector<uint32_t> begin, edges;
  std::vector<uint32_t> in_degree;
};

// Near-linear in instructions + operands; `instructions` are in program order.
DependencyGraph BuildDependencies(const Plan& plan, const std::vector<Instruction>& instructions);

}  // namespace heddle
