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
  uint64_t waits = 0;      // that did not find the other lane far enough
  uint64_t switches = 0;   // lanes let go of for another one
  uint64_t parks = 0;      // times a thread went to sleep
  uint64_t spun_ns = 0;    // waited awake (long waits only: the clock is not read for short ones)
  uint64_t parked_ns = 0;  // waited asleep
  LaneStats& operator+=(const LaneStats& o);
};

class LaneRun {
 public:
  explicit LaneRun(const LaneSchedule& schedule);

  // Executes order[begin .. end); false: give up the run. What other segments wrote before they
  // signalled happens before the call. Must not throw.
  using Body = FunctionRef<bool(uint32_t lane, uint32_t begin, uint32_t end)>;

  // Told, on the waiting thread, of each wait that did not find the other lane far enough, and of
  // those for a lane to take up (`wait` nullptr), when it is over. `begin`: Ticks(). Must not
  // throw.
  using OnWait = FunctionRef<void(int participant, const LaneWait* wait, uint64_t begin)>;

  // `on_wait` nullptr: nobody wants to know; it must live until the run is over.
  void Begin(const OnWait* on_wait = nullptr);
  // Returns when every lane is finished or the run was given up. One participant is enough; there
  // may be as many as lanes.
  void Participate(int participant, Body body);
  // Gives the run up: waiting threads return. From any thread.
  void Stop();
  bool finished() const { return unfinished_.load(std::memory_order_acquire) == 0; }
  // After the run.
  LaneStats stats() const;

  // A thread waits so long before it takes up another lane, and so long before it sleeps.
  static constexpr uint64_t kSwitchNs = 1500;
  static constexpr uint64_t kSpinNs = 20000;

 private:
  enum Hold : uint32_t { kFree, kTaken, kDone };
  enum class Outcome { kReady, kSwitch, kStopped };
  struct alignas(128) Lane {
    std::atomic<uint32_t> progress{0};  // written by who executes the lane, read by those who wait
    alignas(64) std::atomic<uint32_t> hold{kFree};
    std::atomic<uint32_t> at{0};  // next segment; changed only by who executes the lane
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
  std::unique_ptr<LaneStats[]> idle_;  // per participant, while it has no lane
  const OnWait* on_wait_ = nullptr;
  alignas(128) std::atomic<uint32_t> free_{0};  // lanes that nobody has and that are not done
  std::atomic<uint32_t> unfinished_{0};
  std::atomic<bool> stopped_{false};
  alignas(64) EventCount changed_;  // progress, a lane let go, the end
};

}  // namespace heddle
