// TaskHost: dispatches a plan with tasks of the host. Steps that have to wait for a task are put
// off, and the thread that dispatches goes on; other threads execute tasks meanwhile.
//
// StreamSync derives what is finished at a step from three orders, and this class keeps them: the
// order within each lane; the order of an event's records and waits; and no step overtakes a
// barrier, a step that the host waits for and that stands before it in the plan. All other steps
// may change their order.
//
// Threads: Dispatch by the thread of the run. DeviceTasks has one thread at a time call Advance,
// each call after the one before it: the state below is theirs. Others call CanStart and RunTask
// meanwhile, which touch none of it.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "executor/device/device_session.h"
#include "executor/device/device_tasks.h"
#include "executor/device/dispatcher.h"
#include "executor/device/replayer.h"
#include "scheduler/host_pool.h"

namespace heddle {

class TaskHost {
 public:
  // `pool`: whose threads help, nullptr: nobody's.
  TaskHost(DeviceSession& session, Dispatcher& dispatcher, Replayer& replayer, HostPool* pool)
      : session_(session), dispatcher_(dispatcher), replayer_(replayer), pool_(pool) {}

  Status Dispatch();

 private:
  using Phase = DevicePlan::Phase;
  enum class Stage : uint8_t { kStart, kBefore, kKernels, kOneByOne, kAfter, kAll };

  // Goes on with the run as far as it can before a task has finished; `*done`: to its end.
  Status Advance(bool* done);
  // ... with steps from next_ on, those of the phase where there is one, in their order; those that
  // have to wait for a task are put off, and what comes after them goes on as far as it may.
  Status DispatchAround(std::optional<Phase> phase, bool* done);
  bool KernelsCanStart();
  bool CanDispatch(size_t i) const;
  bool IsBarrier(size_t i) const;
  void PutOff(uint32_t i);
  Status DispatchPutOff();
  std::span<const uint32_t> TasksBefore(size_t i) const {
    const DeviceStep& step = session_.StepAt(i);
    return std::span(session_.device_plan.task_waits)
        .subspan(step.task_begin, step.task_end - step.task_begin);
  }
  bool CanStart(const DeviceTask& task);
  DeviceTasks::Error RunTask(const DeviceTask& task, int participant);

  DeviceSession& session_;
  Dispatcher& dispatcher_;
  Replayer& replayer_;
  HostPool* const pool_;
  DeviceTasks* tasks_ = nullptr;  // while it dispatches

  Stage stage_ = Stage::kStart;
  uint32_t next_ = 0;                    // step
  std::vector<uint32_t> put_off_;        // steps, in their order
  std::vector<bool> is_put_off_;         // per step
  std::vector<uint32_t> put_off_lanes_;  // how many of each lane
};

}  // namespace heddle
