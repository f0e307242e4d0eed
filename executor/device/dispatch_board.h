// DispatchBoard: the state shared by the threads that dispatch one run on several devices: which
// events are recorded, how many barriers are done, and the failure.
//
// Threads: all methods may be called from any thread. Memory ordering: what a thread did before
// Done or Fail happens before what another one does after it has learned of it from IsRecorded,
// barriers or is_over.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/function_ref.h"
#include "core/thread_annotations.h"
#include "executor/device/device_tasks.h"
#include "scheduler/event_count.h"

namespace heddle {

class DispatchBoard {
 public:
  explicit DispatchBoard(const DevicePlan& plan) : plan_(plan), recorded_(plan.events) {}

  bool IsRecorded(uint32_t event) const { return recorded_[event].load(std::memory_order_acquire); }
  // The number of barriers that are done, which happens in the plan's order.
  uint32_t barriers() const { return barriers_.load(std::memory_order_acquire); }
  bool is_over() const { return over_.load(std::memory_order_acquire); }

  // Reports that a step has been dispatched or, for the host's own steps, executed.
  void Done(size_t step);
  // Reports a failure: nothing further must be dispatched. The first error is the run's.
  void Fail(DeviceTasks::Error error);
  DeviceTasks::Error error();

  // A counter that grows with every change that a thread may wait for.
  uint64_t news() const { return news_.load(std::memory_order_seq_cst); }
  // Sleeps until news() differs from `seen`.
  void Await(uint64_t seen);
  // Counts a change and wakes all threads, for changes outside the board such as the end of a task.
  void Tell();
  // `on_news` is called after Done and Fail. To be set before any thread begins.
  void Observe(const FunctionRef<void()>* on_news) { on_news_ = on_news; }

 private:
  void TellAll();

  const DevicePlan& plan_;
  std::vector<std::atomic<bool>> recorded_;
  std::atomic<uint32_t> barriers_{0};
  std::atomic<bool> over_{false};
  std::atomic<uint64_t> news_{0};
  EventCount changed_;
  const FunctionRef<void()>* on_news_ = nullptr;
  Mutex mutex_;
  DeviceTasks::Error error_ HEDDLE_GUARDED_BY(mutex_);
};

}  // namespace heddle
