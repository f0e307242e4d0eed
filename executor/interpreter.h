// Interpreter: executes the instructions of a Plan on a RunState.
#pragma once

#include <span>

#include "executor/plan.h"
#include "executor/run_state.h"
#include "scheduler/host_pool.h"
#include "scheduler/kernel_arena.h"

namespace heddle {

class Interpreter {
 public:
  // One after another on the calling thread. Stops at the first error.
  static Status RunSerial(const std::vector<Instruction>& instructions, RunState& run);
  // Tasks side by side on `pool`, the calling thread included. The first error wins; tasks already
  // started finish, no further ones start.
  static Status RunParallel(RunState& run, HostPool& pool, KernelArena& arena);

 private:
  static Status Execute(const Instruction& in, RunState& run);
  static Status ExecuteShaped(const Instruction& in, RunState& run);
  static Status ExecuteDynamic(const Instruction& in, RunState& run);
  static void RunTasks(int participant, RunState& run);
};

}  // namespace heddle
