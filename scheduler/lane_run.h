// LaneRun: executes a LaneSchedule with however many threads there are.
//
// Each lane has one number that only grows during a run, its progress; a wait is a comparison with
// it. A thread takes a lane that nobody has, executes it as far as it can, and lets go of it when
// it would have to wait while another lane could go on. So any number of threads from one upwards
// finishes the run, and with as many threads as lanes each stays on its lane. How this is known not
// to hang, and the memory ordering: scheduler/README.md.
//
// Ownership: refers to the schedule, which must outlive it. Threads: Begin by one thread while no
// other is inside; Participate by any number of threads, each with an index of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "core/function_ref.h"
#include "scheduler/event_count.h"
#include "scheduler/lane_schedule.h"

namespace heddle {

// Counts of the hand-overs between lanes in one run.
struct LaneStats {
  uint64_t waits = 0;     // waits for a lane that had not come far enough
  uint64_t switches = 0;  // lanes let go of for another one
  uint64_t parks = 0;     // times a thread went to sleep
  // Time waited awake, of long waits only: the clock is not read for short ones.
  uint64_t spun_ns = 0;
  uint64_t parked_ns = 0;  // time waited asleep
  LaneStats& operator+=(const LaneStats& o);
};

class LaneRun {
 public:
  explicit LaneRun(const LaneSchedule& schedule);

  // Executes order[begin .. end); returns false to give up the run. What other segments wrote
  // before they signalled happens before the call. Must not throw.
  using Body = FunctionRef<bool(uint32_t lane, uint32_t begin, uint32_t end)>;

  // Is called on the waiting thread at the end of each wait for a lane that had not come far
  // enough, and of each wait for a free lane (`wait` is nullptr then). `begin`: when the wait
  // began, in Ticks(). Must not throw.
  using OnWait = FunctionRef<void(int participant, const LaneWait* wait, uint64_t begin)>;

  // Prepares a run. `on_wait`, if not nullptr, must live until the run is over.
  void Begin(const OnWait* on_wait = nullptr);
  // Returns when every lane is finished or the run was given up. One participant is enough; there
  // may be as many as lanes.
  void Participate(int participant, Body body);
  // Gives the run up: waiting threads return. From any thread.
  void Stop();
  bool finished() const { return unfinished_.load(std::memory_order_acquire) == 0; }
  // After the run.
  LaneStats stats() const;

  // How long a thread waits before it takes up another lane, and before it sleeps.
  static constexpr uint64_t kSwitchNs = 1500;
  static constexpr uint64_t kSpinNs = 20000;

 private:
  enum Hold : uint32_t { kFree, kTaken, kDone };
  enum class Outcome { kReady, kSwitch, kStopped };
  struct alignas(128) Lane {
    // Written by the thread that executes the lane, read by those that wait.
    std::atomic<uint32_t> progress{0};
    alignas(64) std::atomic<uint32_t> hold{kFree};
    std::atomic<uint32_t> at{0};  // next segment; changed only by the thread that executes the lane
    LaneStats stats;
  };

  bool Reached(const LaneWait& w, std::memory_order order) const {
    return lanes_[w.lane].progress.load(order) >= w.signal;
  }
  bool CanGoOn(const Lane& lane) const;
  bool AnyCanGoOn() const;
  bool TryTake(Lane& lane);
  Lane* TakeOneThatCanGoOn(uint32_t first);
  void Execute(int participant, Lane& lane, Body body);
  Outcome Await(int participant, const LaneWait& wait, Lane& lane);
  Outcome AwaitLong(const LaneWait& wait, Lane& lane);
  void LetGo(Lane& lane, uint32_t at);
  bool AwaitLane(int participant);
  bool AwaitLaneLong(LaneStats* stats);

  const LaneSchedule& schedule_;
  const uint32_t count_;
  std::unique_ptr<Lane[]> lanes_;
  std::unique_ptr<LaneStats[]> idle_;  // per participant, for the time when it has no lane
  const OnWait* on_wait_ = nullptr;
  alignas(128) std::atomic<uint32_t> free_{0};  // lanes that no thread holds and that are not done
  std::atomic<uint32_t> unfinished_{0};
  std::atomic<bool> stopped_{false};
  alignas(64) EventCount changed_;  // notified of progress, of a lane let go, and of the end
};

}  // namespace heddle
