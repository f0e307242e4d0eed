// DeviceTasks: the tasks of one run with a device. It decides which thread executes which task, and
// which thread dispatches the steps.
//
// All threads that take part are alike. One at a time dispatches, until it cannot go on before a
// task has finished; the others, and then it too, execute tasks. So while some threads are in the
// middle of a task, another one always goes on dispatching.
//
// Ownership: keeps nothing; the plan and the functions must outlive it. Threads: Participate from
// any number of threads, each with a participant number of its own, from 0; HandOver and Finished
// from inside `advance`. Errors: the first one wins; tasks under way are completed, and no further
// ones start. Memory ordering: everything before a task's HandOver, and everything done by the
// tasks it needs, happens before it; everything a task did happens before a Finished that says so;
// one call of `advance` happens before the next; and all before Participate returns (one mutex
// orders them).
#pragma once

#include <atomic>
#include <deque>
#include <span>
#include <vector>

#include "core/function_ref.h"
#include "core/thread_annotations.h"
#include "executor/plan/device_plan.h"
#include "heddle/status.h"

namespace heddle {

class DeviceTasks {
 public:
  struct Error {
    Status status;
    bool on_device = false;  // the streams know more about it
  };
  struct Calls {
    // Dispatches as many steps as it can; sets `*done` when it has dispatched all. Is called again
    // when tasks have finished.
    FunctionRef<Error(int participant, bool* done)> advance;
    // Whether the device has reached all events that the task waits for.
    FunctionRef<bool(const DeviceTask&)> can_start;
    FunctionRef<Error(const DeviceTask&, int participant)> execute;
  };
  // The functions must not throw.
  DeviceTasks(const DevicePlan& plan, const Calls& calls);

  // Is called after a sleep, on the thread that slept; `begin`: Ticks(). Must not throw.
  using OnWait = FunctionRef<void(int participant, uint64_t begin)>;
  // To be called before Participate; nullptr: no observer.
  void ObserveWaits(const OnWait* on_wait) { on_wait_ = on_wait; }
  // Is called after each task, under a lock: it must not call back.
  void ObserveEnds(const FunctionRef<void()>* on_end) { on_end_ = on_end; }
  // Makes a thread dispatch again: a step may have become ready without the end of a task.
  void Poke();
  // Dispatches, executes tasks or sleeps, until all is done or, after a failure, all that was under
  // way.
  void Participate(int participant);
  // The first failure, if there was one; to be called after Participate.
  Error TakeError();

  void HandOver(uint32_t task);
  bool Finished(std::span<const uint32_t> tasks);
  // A counter that grows whenever a task finishes.
  uint32_t news() const { return news_.load(std::memory_order_acquire); }

 private:
  // The first two release the mutex meanwhile.
  void Dispatch(int participant) HEDDLE_REQUIRES(mutex_);
  void Execute(int participant) HEDDLE_REQUIRES(mutex_);
  uint32_t Choose() HEDDLE_REQUIRES(mutex_);
  void Fail(Error error) HEDDLE_REQUIRES(mutex_);
  bool MayDispatch() const HEDDLE_REQUIRES(mutex_) {
    return !dispatching_ && !dispatched_ && !failed_ &&
           news_.load(std::memory_order_relaxed) != seen_;
  }
  bool IsOver() const HEDDLE_REQUIRES(mutex_) {
    return (dispatched_ || failed_) && !dispatching_ && running_ == 0 && ready_.empty();
  }

  const DevicePlan& plan_;
  const Calls calls_;
  const OnWait* on_wait_ = nullptr;
  const FunctionRef<void()>* on_end_ = nullptr;
  std::atomic<uint32_t> news_{1};

  Mutex mutex_;
  CondVar changed_;  // there is something to do, or everything is over
  // Per task: the number of conditions still open, its HandOver among them; whether it has
  // finished.
  std::vector<uint32_t> needs_ HEDDLE_GUARDED_BY(mutex_);
  std::vector<bool> finished_ HEDDLE_GUARDED_BY(mutex_);
  std::deque<uint32_t> ready_ HEDDLE_GUARDED_BY(mutex_);  // tasks
  uint32_t seen_ HEDDLE_GUARDED_BY(mutex_) = 0;  // news_ at the beginning of the latest dispatching
  size_t running_ HEDDLE_GUARDED_BY(mutex_) = 0;  // tasks being executed
  bool dispatching_ HEDDLE_GUARDED_BY(mutex_) = false, dispatched_
                                                       HEDDLE_GUARDED_BY(mutex_) = false;
  bool failed_ HEDDLE_GUARDED_BY(mutex_) = false, over_ HEDDLE_GUARDED_BY(mutex_) = false;
  Error error_ HEDDLE_GUARDED_BY(mutex_);
};

}  // namespace heddle
