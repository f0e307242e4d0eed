// Builds the dependency graph of a block's instructions.
//
// Edges follow from the slots that an instruction and the blocks it runs read and write (read after
// write, write after read, write after write); from declared traits (random operators, side
// effects, communication and readers keep their order); and from the program's control edges. Edges
// that others imply are dropped, as far as a bounded search finds them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "executor/plan/block_access.h"
#include "executor/plan/plan.h"
#include "scheduler/static_graph.h"

namespace heddle {

struct DependencyGraph {
  StaticGraph graph;  // one node per instruction; an edge u -> v: v waits for u
  size_t found = 0;   // number of edges before implied ones were dropped
};

// `instructions` are in program order. `at_once`: instructions that have read their inputs before
// the next one is looked at, so that later writers of these inputs need not wait for them; may be
// empty. The graph has the priorities that operators state (ir::StreamHints), if any does. Time:
// nearly linear in instructions and operands.
DependencyGraph BuildDependencies(const Plan& plan, const std::vector<Instruction>& instructions,
                                  const std::vector<bool>& at_once = {});
// The same for callers that ask for several blocks: `access` is reused.
DependencyGraph BuildDependencies(const Plan& plan, const std::vector<Instruction>& instructions,
                                  BlockAccess& access);

// Per instruction: ir::StreamHints::scheduling_priority; empty if no operator has one.
std::vector<int64_t> PrioritiesOf(const Plan& plan, const std::vector<Instruction>& instructions);

}  // namespace heddle
