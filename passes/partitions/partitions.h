// The programs of a partition while passes of POST_PARTITIONING rewrite them: what stands behind
// heddle/passes/partitions.h, and the runner for programs that a caller has split.
//
// Ownership: values; programs are copied before they are changed. Threads: one at a time.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/programs/ir.h"
#include "heddle/passes/partitions.h"
#include "passes/custom_pass.h"
#include "passes/pass.h"

namespace heddle {
namespace passes {

// What a target counts for a program, or why it does not take it.
using TargetCosts = std::function<Result<double>(const ir::Program&)>;

}  // namespace passes

namespace internal {

// One program of the partition.
struct PartitionEntry {
  PartitionEntry(std::string t, std::string s, ir::Program& p, passes::PassContext& c,
                 passes::TargetCosts k)
      : target(std::move(t)),
        symbol(std::move(s)),
        program(p),
        context(c),
        costs(std::move(k)),
        handle(*this) {}
  PartitionEntry(const PartitionEntry&) = delete;
  PartitionEntry& operator=(const PartitionEntry&) = delete;

  const std::string target, symbol;
  ir::Program& program;
  passes::PassContext& context;
  const passes::TargetCosts costs;              // of a group
  std::unique_ptr<passes::OwnedEditor> editor;  // once a pass has asked for it
  PartitionProgram handle;
};

// All of them, and what passes are told besides.
class PartitionState {
 public:
  void Add(const std::string& target, const std::string& symbol, ir::Program& program,
           passes::PassContext& context, passes::TargetCosts costs = nullptr);

  std::deque<PartitionEntry> entries;
  std::map<std::string, std::vector<PartitionProgram*>> programs;
  std::vector<PartitionPlace> targets;
  std::shared_ptr<const ir::Program> source;  // whose functions are asked for
  std::optional<FunctionLibrary> functions;
  const CompileOptions* compile_options = nullptr;
  const ExecutorOptions* executor_options = nullptr;
  int level = 0;
};

}  // namespace internal

namespace passes {

// A program that was split off.
struct PartProgram {
  std::string target = PartitionProgram::kHost, symbol = {};
  // As it is; then, if passes changed it, what they made. Variables keep their ids, new ones have
  // higher ones.
  std::shared_ptr<const ir::Program> program = nullptr;
  // Its parameters; then, if passes made some, a child of that with those.
  std::shared_ptr<Scope> scope = nullptr;
  std::vector<std::string> keep = {};  // variables that are fetched besides its fetches
  TargetCosts costs = nullptr;
  bool changed = false;
  uint64_t form = 0;  // of what passes made: equal programs have equal ones
};

// A partition, and what passes are told of it.
struct PartitionSet {
  std::vector<PartProgram> programs;                    // the host's first
  std::vector<std::string> targets;                     // in the order in which they claim
  std::shared_ptr<const ir::Program> source = nullptr;  // the program that was split
  const CompileOptions* compile_options = nullptr;
  const ExecutorOptions* executor_options = nullptr;
};

// Runs the passes of POST_PARTITIONING that take partitions, those of `options.custom` and heddle's
// own, over all programs. Not OK: which pass failed, or broke which program; then `set` is as it
// was. Programs that are not optimised (FindHole) are left out, with a warning.
Result<PassReport> RunOnPartitions(const PassOptions& options, int level, PartitionSet* set);

}  // namespace passes
}  // namespace heddle
