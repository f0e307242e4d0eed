// RunSession: one call of Run, from the feeds that were given to the outputs that are handed over.
//
//   Run      if the program communicates, it is the rank's turn, and other ranks hear how it ends
//   RunOnce  the plan is found or made; the run waits until it is let in
//   Make     RunPolicy says in which way; then, for that way,
//     Acquire    a RunState of the plan, with memory
//     Execute    feeds and outputs are bound, the instructions are interpreted
//     Report     what was measured is told
//     Fetch      outputs are moved out
//   ~RunSession   whatever happened, the state is emptied and goes back for the next run
//
// Ownership: keeps the plan, its state and references to what the caller has, which waits in Run.
// Threads: Run from any thread; the session itself lives on the one that makes the run, which
// RunAdmission chooses. Errors: what is thrown by setting up a run ends as a Status; the executor
// and its parameters stay usable.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/lock_or_leave.h"
#include "executor/compiled.h"
#include "executor/plan_cache.h"
#include "executor/plan_service.h"
#include "executor/run/run_control.h"
#include "executor/run_resources.h"
#include "heddle/run_options.h"

namespace heddle::internal {

// Buffers that a caller keeps from run to run, so that a run does not allocate them.
struct RunMemory {
  std::string key;                   // by which the plan was found
  std::vector<const Value*> values;  // the feeds' values
  std::vector<Tensor> bound;         // the caller's memory for outputs, or empty
  std::vector<Value> outputs;        // for callers that hand them on
  std::vector<ir::VarId> otherwise;  // of a failed run: see RunState::TakeOtherwise
  // The run's number among those of its program. A repetition keeps it, and so draws the same
  // random numbers.
  std::optional<uint64_t> number;
};

// The arguments of one call of Run.
struct RunCall {
  CompiledImpl& compiled;
  const std::vector<Feed>& feeds;
  const RunOptions& options;
  RunMemory& memory;
  std::vector<Value>* out;
  // What check_nan_inf checks; null: what every instruction writes.
  const CheckedOps* checked = nullptr;
  std::thread::id caller = std::this_thread::get_id();
};

class RunSession {
 public:
  static Status Run(RunResources& resources, PlanService& plans, const RunCall& call);

  RunSession(const RunSession&) = delete;
  RunSession& operator=(const RunSession&) = delete;

 private:
  // `alone`: the run may use all threads.
  RunSession(RunResources& resources, const PlanService::Planned& planned, const RunCall& call,
             bool alone)
      : resources_(resources),
        cached_(*planned.plan),
        values_(planned.values),
        call_(call),
        alone_(alone) {}
  ~RunSession();

  static Status RunOnce(RunResources& resources, PlanService& plans, const RunCall& call);
  static Status PlanAndRun(RunResources& resources, PlanService& plans, const RunCall& call);
  // The plan, and the lock that a run needs if it writes to the scope.
  static Result<PlanService::Planned> PlanAndLock(PlanService& plans, const RunCall& call,
                                                  HeldMutex* writes);
  static Status RunPlan(RunResources& resources, const PlanService::Planned& planned,
                        const RunCall& call);
  static Status Admitted(RunResources& resources, const PlanService::Planned& planned,
                         const RunCall& call, int threads);
  Status Make();
  Status Acquire();
  Status Execute();
  Status Interpret();
  Status InterpretDevice();
  void SeedRandom();
  void Report(bool succeeded);
  Status Fetch();
  void MarkWritten();
  void TrimForTrial();

  RunResources& resources_;
  CachedPlan& cached_;
  const std::shared_ptr<const ScopeValues>& values_;
  const RunCall& call_;
  const bool alone_;
  RunPolicy::Turn turn_;
  std::unique_ptr<RunState> state_;
  bool shared_ = false;  // several threads share the plan's instructions
  bool intact_ = false;  // the state may be used again
  bool succeeded_ = false;
  double ns_ = 0;  // time of the instructions
};

}  // namespace heddle::internal
