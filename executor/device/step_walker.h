// StepWalker: goes through the steps of a device plan for one thread. A step that has to wait for a
// task, or for a step that another thread dispatches, is deferred together with those that must
// follow it, and the thread goes on with the others.
//
// StreamSync derives what is finished at a step from three orders, which this class keeps: the
// order within each stream; the order of an event's record and the waits for it; and no step
// overtakes a barrier, that is, an earlier step of the plan that the host waits for. All other
// steps may change their order.
//
// Threads: one at a time.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "executor/device/device_session.h"
#include "executor/device/device_tasks.h"
#include "executor/device/dispatch_board.h"
#include "executor/device/dispatcher.h"

namespace heddle {

class StepWalker {
 public:
  // Walks all steps of a plan with tasks.
  StepWalker(DeviceSession& session, Dispatcher& dispatcher, DeviceTasks& tasks)
      : StepWalker(session, dispatcher, &tasks, nullptr, 0) {}
  // Walks the steps of one of several threads (DevicePlan::ThreadOf), which share the board.
  // `tasks`: nullptr if the plan has none.
  StepWalker(DeviceSession& session, Dispatcher& dispatcher, DeviceTasks* tasks,
             DispatchBoard* board, uint32_t thread);

  // Begins again with the first step.
  void Restart() { next_ = 0; }
  // Dispatches further steps (only of `phase`, if given) until the next one has to wait for news of
  // tasks or of the board. Sets `*done` when all are dispatched.
  Status Advance(std::optional<DevicePlan::Phase> phase, bool* done);

  std::span<const uint32_t> TasksBefore(size_t i) const {
    const DeviceStep& step = session_.StepAt(i);
    return std::span(session_.device_plan.task_waits)
        .subspan(step.task_begin, step.task_end - step.task_begin);
  }

 private:
  uint64_t News() const { return board_ != nullptr ? board_->news() : tasks_->news(); }
  bool IsOver() const { return board_ != nullptr && board_->is_over(); }
  bool IsMine(size_t i) const {
    return board_ == nullptr || session_.device_plan.ThreadOf(session_.StepAt(i).stream) == thread_;
  }
  bool CanDispatch(size_t i) const;
  // Whether no later step may be dispatched before it.
  bool HoldsUp(size_t i) const;
  bool IsBehindBarriers(size_t i) const {
    return board_ == nullptr || board_->barriers() >= session_.device_plan.barriers_before[i];
  }
  Status Dispatch(size_t i);
  void PutOff(uint32_t i);
  Status DispatchPutOff();

  DeviceSession& session_;
  Dispatcher& dispatcher_;
  DeviceTasks* const tasks_;
  DispatchBoard* const board_;
  const uint32_t thread_;
  uint32_t next_ = 0;                 // the next step
  std::vector<uint32_t> put_off_;     // deferred steps, in their order
  std::vector<bool> is_put_off_;      // per step
  std::vector<uint32_t> put_off_of_;  // per stream: number of deferred steps
};

}  // namespace heddle
