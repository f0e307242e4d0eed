// Clean-ups inside groups. A program is split as its file has it, before heddle's own clean-ups, so
// that groups hold what an exporter left in them: weights that are transposed or cast by operators,
// equal operators, results that nobody reads. Each target, and each engine, would have to know
// that for itself, or compute it in every run.
#include <algorithm>

#include "passes/nested_blocks.h"
#include "passes/partitions/partitions.h"

namespace heddle::passes {
namespace {

// Those that only take operators away: a target may know no others.
constexpr const char* kCleanUps[] = {"fold_constants", "cse", "dead_ops"};
constexpr int kMostRounds = 10;

std::vector<PassDef> CleanUps() {
  std::vector<PassDef> all = AllPasses(), found;
  for (const char* name : kCleanUps)
    for (PassDef& pass : all)
      if (pass.name == name) found.push_back(std::move(pass));
  return found;
}

// What the target does not take any more stays as it was: a unit may want an operator between two
// others, or an operand that is no parameter.
Result<bool> CleanGroup(const std::vector<PassDef>& passes, internal::PartitionEntry& group) {
  bool changed = false, again = true;
  std::vector<bool> refused(passes.size(), false);
  for (int round = 0; round < kMostRounds && again; ++round) {
    again = false;
    for (size_t k = 0; k < passes.size(); ++k) {
      if (refused[k]) continue;
      ir::Program before = group.program;
      group.context.uses = FindBlockUses(group.program);
      HEDDLE_ASSIGN_OR_RETURN(const bool did, passes[k].run(group.program, group.context));
      if (!did) continue;
      if (!group.program.blocks[0].ops.empty() && group.costs(group.program).ok()) {
        again = changed = true;
        continue;
      }
      group.program = std::move(before);
      refused[k] = true;
    }
  }
  return changed;
}

Result<bool> CleanGroups(Partitions& partitions) {
  bool changed = false;
  std::vector<PassDef> passes;
  for (const auto& [target, programs] : partitions.programs()) {
    if (target == PartitionProgram::kHost) continue;
    if (passes.empty()) passes = CleanUps();
    for (PartitionProgram* group : programs) {
      HEDDLE_ASSIGN_OR_RETURN(const bool did, CleanGroup(passes, group->impl()));
      changed = changed || did;
    }
  }
  return changed;
}

}  // namespace
}  // namespace heddle::passes

HEDDLE_PASS(clean_groups) {
  pass.doc =
      "computes, inside the groups of targets, what depends on parameters alone ahead of all runs, "
      "and equal things once, and drops what nobody reads: fold_constants, cse and dead_ops, which "
      "have not run when a program is split";
  pass.before = "group: t = transpose2(w); y = matmul_v2(x, t), w a parameter";
  pass.after = "group: y = matmul_v2(x, t@heddle_7), a parameter";
  pass.refuses =
      "what those three leave alone; the host's program; a group that the target, or its engine, "
      "would not take without the operators that go";
  pass.level = 1;
  pass.tolerance = 1e-6;  // as fold_constants
  pass.run_partitions = CleanGroups;
  pass.targets_only = true;
}
