// Dispatcher: dispatches the steps of a device plan: executes a host step, puts a stream's step on
// its stream after the events it waits for, and hands over a task.
//
// Threads: the dispatching thread, except AwaitEvents, which threads with tasks call.
#pragma once

#include <optional>

#include "executor/device/device_session.h"
#include "executor/device/device_tasks.h"
#include "executor/device/device_times.h"
#include "executor/device/step_launcher.h"

namespace heddle {

class Dispatcher {
 public:
  Dispatcher(DeviceSession& session, StepLauncher& launcher)
      : session_(session), launcher_(launcher) {}

  Status Step(size_t i);
  // Dispatches all steps of a block in their order, or only those of a phase.
  Status AllOf(int block, std::optional<DevicePlan::Phase> phase);
  // Makes the host wait for the events of the step.
  Status AwaitEvents(size_t i, int participant);

  // Sets the object to which tasks are handed over; needed for a plan with tasks.
  void UseTasks(DeviceTasks* tasks) { tasks_ = tasks; }
  // Sets the number under which the run's observers know the dispatching thread.
  void set_participant(int participant) { participant_ = participant; }
  // Whether the streams know more about the latest failure.
  bool failed_on_device() const { return launcher_.failed_on_device(); }
  // Adds the measured times to the trace; to be called when the streams are finished.
  Status TellTimes() const { return times_.Tell(session_.run, session_.device_plan); }

 private:
  Status HostStep(size_t i);
  // Runs an operator with a block: its kernel, on the host, decides how often the block runs, see
  // BodyRunner.
  Status RunBlocks(size_t i);
  Status WaitOnStream(size_t i);
  Status AwaitEvent(uint32_t event, size_t i, int participant);
  // Releases the values whose last user is the instruction. Device memory is given back in the
  // order of the streams; host memory is held while a stream reads it.
  Status Release(const Instruction& in);

  DeviceSession& session_;
  StepLauncher& launcher_;
  DeviceTimes times_;
  DeviceTasks* tasks_ = nullptr;
  int participant_ = 0;
};

}  // namespace heddle
