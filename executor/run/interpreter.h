// Interpreter: executes the instructions of a Plan on a RunState.
#pragma once

#include <span>

#include "executor/plan/plan.h"
#include "executor/run/run_state.h"
#include "scheduler/cost_meter.h"
#include "scheduler/host_pool.h"
#include "scheduler/kernel_arena.h"

namespace heddle {

class Interpreter {
 public:
  // Executes the instructions one after another on the calling thread. Stops at the first error.
  static Status RunSerial(std::span<const Instruction> ins, RunState& run, int thread = 0);
  // Executes a sub-block from inside one of the run's instructions. Several threads share it if the
  // plan has lanes for it and the run has helpers. `first` is false in later iterations of a loop,
  // which skip the instructions whose results the first one has left.
  static Status RunNested(int block, bool first, RunState& run);
  // Executes the block of a function from inside a call of it, for which the run has bound the
  // operands.
  static Status RunCall(const PlannedCall& call, RunState& run);
  // Executes one instruction, by the thread that the run's observers know by this number.
  static Status RunOne(const Instruction& instruction, RunState& run, int thread);
  // Executes block 0 on the calling thread, whatever the plan's dispatch is.
  static Status RunOnOneThread(RunState& run);
  // The same for kSerial, timing each instruction; `ns`: the time of the run.
  static Status RunMeasured(RunState& run, CostMeter& meter, double* ns);
  // Execute block 0 on the threads of `pool` and the calling thread. The first error wins;
  // instructions under way are completed, and no further ones start.
  static Status RunLanes(RunState& run, HostPool& pool, KernelArena& arena);
  static Status RunQueue(RunState& run, HostPool& pool, KernelArena& arena);

 private:
  // `state`: that of the kernel, the instruction's own except in calls of functions.
  static Status Call(const Instruction& in, const KernelState* state, RunState& run);
  static Status CallAny(const Instruction& in, const KernelState* state, RunState& run);
  static Status CallWide(const Instruction& in, RunState& run);
  static Status CallWatched(const Instruction& in, const KernelState* state, RunState& run,
                            int thread);
  [[gnu::always_inline]] static Status Execute(const Instruction& in, const KernelState* state,
                                               RunState& run, int thread);
  template <typename At, typename StateOf>
  static Status ExecuteAll(size_t count, At&& at, StateOf&& state_of, RunState& run, int thread);
  template <typename At>
  static Status ExecuteAll(size_t count, At&& at, RunState& run, int thread);
  // Executes an instruction that runs its block as long as a condition holds.
  static Status RunLoop(const Instruction& in, RunState& run);
  static Status RunBodyLanes(int block, bool first, RunState& run);
  static Status ExecuteShaped(const Instruction& in, const KernelState* state, RunState& run);
  // `watch` receives when the parts of the call began; nullptr: not needed.
  static Status ExecuteDynamic(const Instruction& in, RunState& run, RunControl::Watch* watch);
  static void RunTasks(int participant, RunState& run);
};

}  // namespace heddle
