// RunControl: the outside's grip on a run under way: cancelling, deadlines, a look at stalls,
// traces, and at what is written.
//
// Costs a run nothing but one relaxed load per instruction while nobody asked for anything.
// Threads: Interrupt and Report from any thread; the rest by whoever owns the run, before and
// after.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/thread_annotations.h"
#include "executor/plan/plan.h"
#include "heddle/run_options.h"
#include "scheduler/watcher.h"

namespace heddle {

// Operators of the file, by block and their index there.
using CheckedOps = std::vector<std::vector<bool>>;

class RunControl {
 public:
  explicit RunControl(const Plan& plan) : plan_(plan) {}
  ~RunControl() { Disarm(); }

  // Something is to be looked at before the next instruction.
  bool attention() const { return attention_.load(std::memory_order_relaxed) != 0; }
  // kOk, kCancelled or kDeadlineExceeded.
  Status Interrupted() const;
  // Somebody wants to know about every instruction.
  bool observed() const { return (attention_.load(std::memory_order_relaxed) & kObserved) != 0; }
  // Whether the instruction's outputs are checked for NaN and infinity.
  bool Checks(const Instruction& in) const {
    if ((attention_.load(std::memory_order_relaxed) & kCheck) == 0) return false;
    return checked_ == nullptr || IsAmong(*checked_, in);
  }
  // Around an instruction, those of blocks that it runs included: what EndInstruction is to know.
  struct Watch {
    const Instruction* outer = nullptr;  // the one that runs the block
    uint64_t begin_ns = 0, outer_nested_ns = 0;
  };
  Watch BeginInstruction(int lane, const Instruction& in);
  void EndInstruction(int lane, const Instruction& in, const Watch& watch);
  // The lane of the instruction that runs a sub-block; 0 while nobody observes.
  int LaneOf(int block) const {
    return lane_of_.empty() ? 0 : lane_of_[static_cast<size_t>(block)];
  }
  // Times are to be kept for RunReport::events.
  bool traces() const { return trace_; }
  // Records work of a device's stream; times are on the host's clock.
  void AddDeviceWork(const Instruction& in, int lane, std::string stream, uint64_t begin_ns,
                     uint64_t end_ns) {
    device_work_.push_back(
        {{&in, begin_ns, end_ns, end_ns - begin_ns, 1}, lane, std::move(stream)});
  }

  // Arms what the options ask for; Disarm after the run, before the options go away (the destructor
  // does it for a run that ended by an exception).
  // `checked`: what check_nan_inf looks at; null: everything.
  void Arm(const RunOptions& options, int lanes, Watcher& watcher,
           const CheckedOps* checked = nullptr);
  void Disarm();
  // Moves the trace into the report.
  void FillTrace(RunReport* report);

 private:
  enum : uint32_t { kCancel = 1, kDeadline = 2, kObserved = 4, kCheck = 8 };
  struct Event {
    const Instruction* in;
    uint64_t begin_ns, end_ns;
    uint64_t self_ns;  // without instructions of blocks that it runs
    int64_t times;     // executions; from the first one's begin to the last one's end
  };
  struct DeviceWork {
    Event event;
    int lane;
    std::string stream;
  };
  // The view of one lane, on a cache line of its own.
  struct alignas(128) LaneView {
    std::atomic<const Instruction*> current{nullptr};
    std::atomic<uint64_t> ended{0};
    uint64_t nested_ns = 0;  // of instructions within the current one
    std::vector<Event> events;
    // Loops may execute more instructions than memory holds events for: later executions of a
    // sub-block's instruction are added up.
    std::unordered_map<const Instruction*, Event> sums;
    size_t nested = 0;  // events of instructions of sub-blocks
  };
  struct Stopper {
    RunControl* control;
    void operator()() const { control->Interrupt(kCancel); }
  };
  void Interrupt(uint32_t why) { attention_.fetch_or(why, std::memory_order_relaxed); }
  void Record(LaneView* view, const Event& event);
  bool IsAmong(const CheckedOps& ops, const Instruction& in) const;
  void LookForStall();
  std::string Describe(const Instruction& in) const;
  TraceEvent Describe(const Event& event, int lane) const;

  const Plan& plan_;
  std::atomic<uint32_t> attention_{0};
  const CheckedOps* checked_ = nullptr;
  std::optional<std::stop_callback<Stopper>> stopper_;
  std::unique_ptr<LaneView[]> views_;
  std::vector<DeviceWork> device_work_;
  // Per block, while somebody observes: see LaneOf. Each is written by the thread that is about to
  // run the block.
  std::vector<int> lane_of_;
  int lanes_ = 0;
  bool trace_ = false;
  uint64_t start_ns_ = 0;
  Watcher* watcher_ = nullptr;
  uint64_t deadline_id_ = 0;
  // State of the look for stalls.
  Mutex stall_mutex_;
  const RunOptions* stall_options_ HEDDLE_GUARDED_BY(stall_mutex_) = nullptr;
  uint64_t stall_id_ HEDDLE_GUARDED_BY(stall_mutex_) = 0;
  uint64_t ended_before_ HEDDLE_GUARDED_BY(stall_mutex_) = 0;
};

}  // namespace heddle
