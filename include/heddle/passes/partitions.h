// Partitions: the programs that a program has been split into, as passes of POST_PARTITIONING see
// them (CustomPass::run_partitions).
//
//   options.passes.custom.push_back({.name = "npu_shapes",
//                                    .grouping = heddle::PassGrouping::kPostPartitioning,
//                                    .run_partitions = [](heddle::Partitions& all) { ... }});
//
// Offload gives such passes each group of a target as a program of its own, and what stays as that
// of "host", where each group is one operator, offload_group. Compile gives them the whole program
// as that of "host".
//
// A pass rewrites a program's operators; its interface stays: a group has the same feeds and
// fetches, the host's program the same fetches and each group once, with as many operands. What
// breaks this is an error that names pass, program and operator or variable; then nothing has
// changed. A group that its engine refuses in the end, or that stays with heddle, is computed as it
// was before all passes.
//
// Ownership: everything belongs to the caller, for the time of the call only. Threads: that of the
// call.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "heddle/functions.h"
#include "heddle/pass.h"

namespace heddle {

struct CompileOptions;
struct ExecutorOptions;

namespace internal {
class PartitionState;
struct PartitionEntry;
}  // namespace internal

// One of the programs.
class PartitionProgram {
 public:
  static constexpr const char* kHost = "host";

  explicit PartitionProgram(internal::PartitionEntry& entry) : entry_(entry) {}

  const std::string& target() const;  // kHost, or the name of a target
  const std::string& symbol() const;  // of a group: no other group has it; else empty
  std::vector<std::string> feeds() const;
  std::vector<std::string> fetches() const;
  // Costs in ns on the host are ProgramEditor::cost_ns.
  ProgramEditor& editor();
  // Of a group: what the target's file counts for it as it is now, a group's and a byte's cost
  // included. Not OK: why the target, or its engine, does not take it any more; kUnimplemented: it
  // is the host's.
  Result<double> TargetCost() const;
  internal::PartitionEntry& impl() const { return entry_; }

 private:
  internal::PartitionEntry& entry_;
};

// What operators can be given to.
struct PartitionPlace {
  std::string name;         // "cpu", "emulated:0", a target's name
  bool target = false;      // one of Offload's; else the host or a device of the executor
  size_t memory_bytes = 0;  // 0: not known, or the host
};

class Partitions {
 public:
  explicit Partitions(internal::PartitionState& state) : state_(state) {}

  // By target; PartitionProgram::kHost is always there, with one program. Groups are in the order
  // of the file.
  const std::map<std::string, std::vector<PartitionProgram*>>& programs() const;
  PartitionProgram& host() const;
  // The device set: the host, the executor's devices, then targets in the order in which they
  // claim.
  std::vector<PartitionPlace> places() const;
  // The functions of the file that the program was read from; none where its format has none. Read
  // when it is first asked for.
  Result<FunctionLibrary*> functions();
  // The options that the program is compiled, and will be run, with; nullptr where it is only
  // optimised (OptimizeModel).
  const CompileOptions* compile_options() const;
  const ExecutorOptions* executor_options() const;
  int opt_level() const;

 private:
  internal::PartitionState& state_;
};

}  // namespace heddle
