// DispatchTeam: dispatches a plan of several devices on several threads. Each device has a thread
// that puts its steps on its streams; the calling thread executes the host's steps and, with a
// pool, shares out tasks.
//
// If a step needs another thread to dispatch a step first, or another device to finish its work,
// only the thread of that step waits (StepWalker, DispatchBoard).
//
// Ownership: keeps memory that streams read until Drop, and so must outlive DeviceSession::Drain.
// Threads: those of the crew and the caller's inside Dispatch; otherwise the caller's.
#pragma once

#include <deque>

#include "executor/device/device_session.h"
#include "executor/device/dispatch_board.h"
#include "executor/device/dispatch_crew.h"
#include "executor/device/dispatcher.h"
#include "executor/device/replayer.h"
#include "executor/device/step_launcher.h"
#include "scheduler/host_pool.h"

namespace heddle {

class DispatchTeam {
 public:
  // `pool`: threads that help with tasks; nullptr: none.
  DispatchTeam(DeviceSession& session, HostPool* pool);

  // Dispatches all steps. False: another run uses the crew, and nothing was done. Precondition: the
  // crew has a thread for each device.
  bool Dispatch(DispatchCrew& crew, DeviceTasks::Error* error);
  // Adds the measured times to the trace; to be called when the streams are finished.
  Status TellTimes() const;
  // Releases the memory that streams read; to be called when they are finished.
  void Drop();

 private:
  struct Member {
    explicit Member(DeviceSession& session) : launcher(session), dispatcher(session, launcher) {}
    StepLauncher launcher;
    Dispatcher dispatcher;
  };
  // Dispatches the member's steps until all are dispatched or the run has failed.
  void Walk(uint32_t member, int participant, DeviceTasks* tasks, DispatchBoard* board);

  DeviceSession& session_;
  HostPool* const pool_;
  std::deque<Member> members_;  // the caller's, then one per device
};

}  // namespace heddle
