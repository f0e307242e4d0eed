// TaskHost: dispatches a plan with tasks of the host. The dispatching thread goes on with steps
// that need not wait for a task (StepWalker), while other threads execute tasks.
//
// Threads: the thread of the run calls Dispatch. DeviceTasks calls Advance on one thread at a time,
// each call after the one before it: Advance owns the state below. Other threads call CanStart and
// RunTask meanwhile; these functions do not touch the state.
#pragma once

#include "executor/device/device_session.h"
#include "executor/device/device_tasks.h"
#include "executor/device/dispatch_board.h"
#include "executor/device/dispatcher.h"
#include "executor/device/replayer.h"
#include "executor/device/step_walker.h"
#include "scheduler/host_pool.h"

namespace heddle {

class TaskHost {
 public:
  // `pool`: threads that help; nullptr: none. `board`: shared with other threads that dispatch the
  // devices' steps; nullptr: there are none.
  TaskHost(DeviceSession& session, Dispatcher& dispatcher, Replayer& replayer, HostPool* pool,
           DispatchBoard* board = nullptr);

  // Runs until all is done or, after a failure, all that was under way. The error is also reported
  // to the board, if there is one.
  DeviceTasks::Error Dispatch();
  DeviceTasks& tasks() { return tasks_; }

 private:
  using Phase = DevicePlan::Phase;
  enum class Stage : uint8_t { kStart, kBefore, kKernels, kOneByOne, kAfter, kAll };

  // The functions that DeviceTasks calls.
  struct Advancing {
    TaskHost& host;
    DeviceTasks::Error operator()(int participant, bool* done) const;
  };
  struct Asking {
    TaskHost& host;
    bool operator()(const DeviceTask& task) const { return host.CanStart(task); }
  };
  struct Executing {
    TaskHost& host;
    DeviceTasks::Error operator()(const DeviceTask& task, int participant) const;
  };

  // Advances the run as far as it can before a task has finished; sets `*done` at its end.
  Status Advance(bool* done);
  bool KernelsCanStart();
  bool CanStart(const DeviceTask& task);
  DeviceTasks::Error RunTask(const DeviceTask& task, int participant);

  DeviceSession& session_;
  Dispatcher& dispatcher_;
  Replayer& replayer_;
  HostPool* const pool_;
  DispatchBoard* const board_;
  const Advancing advance_{*this};
  const Asking can_start_{*this};
  const Executing execute_{*this};
  DeviceTasks tasks_;
  StepWalker walker_;
  Stage stage_ = Stage::kStart;
};

}  // namespace heddle
