// The tasks of one run with a device: who executes which, and when, and who dispatches the steps.
//
// Threads that take part are all alike: one at a time dispatches, until it can go no further before
// a task has finished; all others, and then it, too, execute tasks. So there is always somebody who
// goes on dispatching while others are in the middle of a task.
//
// Ownership: keeps nothing; the plan and the functions must outlive it. Threads: Participate from
// any number of threads, each with a participant number of its own, from 0; HandOver and Finished
// from inside `advance`. Errors: the first one wins; tasks that are executed come to their end,
// further ones do not start. Memory ordering: everything before a task's HandOver, and everything
// done by the tasks it needs, happens before it; everything a task did happens before a Finished
// that says so; one call of `advance` happens before the next; and all before Participate returns
// (one mutex orders them).
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <span>
#include <vector>

#include "core/function_ref.h"
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
    // Dispatches as far as it can; `*done`: to the end. Called again when tasks have finished.
    FunctionRef<Error(int participant, bool* done)> advance;
    // All that the task waits for of the device is reached, so that it would not be waited for.
    FunctionRef<bool(const DeviceTask&)> can_start;
    FunctionRef<Error(const DeviceTask&, int participant)> execute;
  };
  // The functions must not throw.
  DeviceTasks(const DevicePlan& plan, const Calls& calls);

  // Dispatches and executes tasks, or sleeps, until all is done, or, after a failure, what was
  // under way.
  void Participate(int participant);
  // The first failure, if there was one; after Participate.
  Error TakeError();

  void HandOver(uint32_t task);
  bool Finished(std::span<const uint32_t> tasks);
  // Grows whenever a task finishes.
  uint32_t news() const { return news_.load(std::memory_order_acquire); }

 private:
  using Lock = std::unique_lock<std::mutex>;

  // With the mutex held; Dispatch and Execute let go of it meanwhile.
  void Dispatch(Lock& lock, int participant);
  void Execute(Lock& lock, int participant);
  uint32_t Choose();
  void Fail(Error error);
  bool MayDispatch() const {
    return !dispatching_ && !dispatched_ && !failed_ &&
           news_.load(std::memory_order_relaxed) != seen_;
  }
  bool IsOver() const {
    return (dispatched_ || failed_) && !dispatching_ && running_ == 0 && ready_.empty();
  }

  const DevicePlan& plan_;
  const Calls calls_;
  std::atomic<uint32_t> news_{1};

  std::mutex mutex_;
  std::condition_variable changed_;  // there is something to do, or all is over
  // Guarded by mutex_, as all that follows.
  std::vector<uint32_t> needs_;  // per task: what must come before it, its HandOver included
  std::vector<bool> finished_;   // per task
  std::deque<uint32_t> ready_;   // tasks
  uint32_t seen_ = 0;            // news_ when the newest dispatching began
  size_t running_ = 0;           // tasks
  bool dispatching_ = false, dispatched_ = false, failed_ = false, over_ = false;
  Error error_;
};

}  // namespace heddle
