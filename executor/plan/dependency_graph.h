// Which instructions must wait for which.
//
// From the slots an instruction reads and writes (those of the blocks it runs included): read after
// write, write after read, write after write; from declared traits: random operators among each
// other, side effects, communication, readers first; and from the program's control edges. Edges
// implied by others are dropped, as far as a bounded search sees.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "executor/plan/block_access.h"
#include "executor/plan/plan.h"
#include "scheduler/static_graph.h"

namespace heddle {

struct DependencyGraph {
  StaticGraph graph;  // a node an instruction; an edge u -> v: v waits for u
  size_t found = 0;   // edges before those that others imply were dropped
};

// Near-linear in instructions + operands; `instructions` are in program order. `at_once`: those
// that have read their inputs before the next one is looked at, so that whoever overwrites these
// need not wait for them; may be empty. The graph has the priorities that operators name
// (ir::StreamHints), if some name one.
DependencyGraph BuildDependencies(const Plan& plan, const std::vector<Instruction>& instructions,
                                  const std::vector<bool>& at_once = {});
// The same for who asks for one block after another: `access` is kept for all of them.
DependencyGraph BuildDependencies(const Plan& plan, const std::vector<Instruction>& instructions,
                                  BlockAccess& access);

// Per instruction ir::StreamHints::scheduling_priority; empty: none has one.
std::vector<int64_t> PrioritiesOf(const Plan& plan, const std::vector<Instruction>& instructions);

}  // namespace heddle
