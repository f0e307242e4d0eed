// RunControl: controls a run from outside: cancelling, deadlines, detection of stalls, traces, and
// checks of results.
//
// Costs a run one relaxed load per instruction while none of these is in use. Threads: Raise may be
// called from any thread; everything else by the owner of the run, before and after it.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/interrupts.h"
#include "core/thread_annotations.h"
#include "core/threads/run_deadline.h"
#include "executor/plan/plan.h"
#include "executor/run/run_trace.h"
#include "heddle/run_options.h"
#include "scheduler/watcher.h"

namespace heddle {

// A flag per operator of the file, by block and index in it.
using CheckedOps = std::vector<std::vector<bool>>;

class RunControl final : public Interrupts, public MayHaveDeadline {
 public:
  explicit RunControl(const Plan& plan) : plan_(plan) {}
  ~RunControl() { Disarm(); }

  // Whether some option must be looked at before the next instruction.
  bool attention() const { return bits_.load(std::memory_order_relaxed) != 0; }
  // For Interrupts::Scope, around what a thread does for the run; nullptr: nothing can end it.
  Interrupts* interrupts() { return may_end_ ? this : nullptr; }
  bool has_deadline() const override { return has_deadline_; }
  // Whether each instruction is observed.
  bool observed() const { return (bits_.load(std::memory_order_relaxed) & kObserved) != 0; }
  // Whether the instruction's outputs are checked for NaN and infinity.
  bool Checks(const Instruction& in) const {
    if ((bits_.load(std::memory_order_relaxed) & kCheck) == 0) return false;
    return checked_ == nullptr || IsAmong(*checked_, in);
  }
  // Whether each piece of work is awaited before the next one.
  bool waits_after_each() const { return (bits_.load(std::memory_order_relaxed) & kWaitEach) != 0; }
  // What EndInstruction needs from BeginInstruction. The two surround every instruction, also in
  // sub-blocks.
  struct Watch {
    const Instruction* outer = nullptr;  // the instruction that runs the block
    uint64_t begin = 0, outer_nested = 0;
    // For an instruction whose shapes are found at run time, see TraceSpan.
    uint64_t infer_begin = 0, infer_end = 0, compute_begin = 0;
  };
  Watch BeginInstruction(int thread, const Instruction& in);
  void EndInstruction(int thread, const Instruction& in, const Watch& watch, Value* const* frame);
  // The thread of the instruction that runs a sub-block; 0 if the run is not observed.
  int ThreadOf(int block) const {
    return thread_of_.empty() ? 0 : thread_of_[static_cast<size_t>(block)];
  }
  // Starts the trace before the run's first instruction. Precondition: the run is traced.
  void StartTrace(Value* const* frame);
  // To be called before a traced run of a sub-block: its operator may have added values to records
  // of steps.
  void NoteRecords(int thread, Value* const* frame);
  // The trace of the run; nullptr: the run is not traced.
  RunTrace* trace() const { return trace_.get(); }

  // Arm puts the options into effect, before a run. Disarm must be called after the run, while the
  // options exist (the destructor does it for a run that ended by an exception). `checked`: what
  // check_nan_inf checks; null: everything. `dispatchers`: additional threads that execute no
  // instructions. `caller`: the thread on which the host's calls are made.
  void Arm(const RunOptions& options, int threads, Watcher& watcher,
           const CheckedOps* checked = nullptr, size_t dispatchers = 0,
           std::thread::id caller = std::this_thread::get_id());
  // What a call of the host since Arm has failed with.
  Status HostFailure() const { return host_.Failure(); }
  void Disarm();
  // The raw trace, after the run.
  std::unique_ptr<RunTrace> TakeTrace() { return std::move(trace_); }

 private:
  // Bits besides those of Interrupts.
  enum : uint32_t { kObserved = 8, kCheck = 16, kWaitEach = 32 };
  // What one thread is doing, on a cache line of its own.
  struct alignas(128) ThreadView {
    std::atomic<const Instruction*> current{nullptr};
    std::atomic<uint64_t> ended{0};
  };
  struct Stopper {
    RunControl* control;
    void operator()() const { control->Raise(kCancel); }
  };
  Status Ask() const override { return host_.Serve(); }
  bool IsAmong(const CheckedOps& ops, const Instruction& in) const;
  void LookForStall();
  std::string Describe(const Instruction& in) const;

  const Plan& plan_;
  bool may_end_ = false;  // until its instructions have ended
  bool has_deadline_ = false;
  mutable HostLine host_;
  const CheckedOps* checked_ = nullptr;
  std::optional<std::stop_callback<Stopper>> stopper_;
  std::unique_ptr<ThreadView[]> views_;
  // Per block, if the run is observed: see ThreadOf. Written by the thread that is about to run the
  // block.
  std::vector<int> thread_of_;
  int threads_ = 0;
  std::unique_ptr<RunTrace> trace_;
  Watcher* watcher_ = nullptr;
  uint64_t deadline_id_ = 0;
  // State of the detection of stalls.
  Mutex stall_mutex_;
  const RunOptions* stall_options_ HEDDLE_GUARDED_BY(stall_mutex_) = nullptr;
  uint64_t stall_id_ HEDDLE_GUARDED_BY(stall_mutex_) = 0;
  uint64_t ended_before_ HEDDLE_GUARDED_BY(stall_mutex_) = 0;
};

}  // namespace heddle
