// Dispatcher: takes the steps of a device plan: the host's it executes, those of streams it puts
// there behind what they wait for, tasks it hands over.
//
// Threads: that which dispatches, but for AwaitEvents, which threads with tasks call meanwhile.
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
  // All steps of a block in their order, or those of a phase.
  Status AllOf(int block, std::optional<DevicePlan::Phase> phase);
  // The host waits for the step's events.
  Status AwaitEvents(size_t i, int participant);

  // Who tasks are handed over to; of a plan with tasks.
  void UseTasks(DeviceTasks* tasks) { tasks_ = tasks; }
  // The thread that dispatches, as watchers of the run know it.
  void set_participant(int participant) { participant_ = participant; }
  // The newest failure is one that streams know more about.
  bool failed_on_device() const { return launcher_.failed_on_device(); }
  // In a run that is traced, after the streams are done.
  Status TellTimes() const { return times_.Tell(session_.run, session_.device_plan); }

 private:
  Status HostStep(size_t i);
  // The operator's kernel decides on the host whether its block runs, see BodyRunner.
  Status RunBlocks(size_t i);
  Status WaitOnStream(size_t i);
  Status AwaitEvent(uint32_t event, size_t i, int participant);
  // Releases the values that the instruction uses last. Memory of the device returns in the order
  // of streams; memory of the host is held while a stream reads it.
  Status Release(const Instruction& in);

  DeviceSession& session_;
  StepLauncher& launcher_;
  DeviceTimes times_;
  DeviceTasks* tasks_ = nullptr;
  int participant_ = 0;
};

}  // namespace heddle
