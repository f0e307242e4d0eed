// DispatchTeam: dispatches a plan of several devices on several threads. Each device has a thread
// that puts its steps on its streams; the calling thread executes the host's steps and, with a
// pool, shares out tasks.
//
// A thread waits at a step that needs another thread to dispatch a step, or another device to
// finish its work; the other threads go on (StepWalker, DispatchBoard).
//
// Ownership: keeps what streams read until Drop: it outlives DeviceSession::Drain. Threads: those
// of the crew and the caller's within Dispatch; otherwise the caller's.
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
  // `pool`: whose threads help with tasks, nullptr: nobody's.
  DispatchTeam(DeviceSession& session, HostPool* pool);

  // False: another run has the crew; nothing was done. Precondition: it has a thread for each
  // device.
  bool Dispatch(DispatchCrew& crew, DeviceTasks::Error* error);
  // In a run that is traced, after the streams are done.
  Status TellTimes() const;
  // After the streams are done.
  void Drop();

 private:
  struct Member {
    explicit Member(DeviceSession& session) : launcher(session), dispatcher(session, launcher) {}
    StepLauncher launcher;
    Dispatcher dispatcher;
  };
  // Until the member's steps are dispatched, or the run has failed.
  void Walk(uint32_t member, int participant, DeviceTasks* tasks, DispatchBoard* board);

  DeviceSession& session_;
  HostPool* const pool_;
  std::deque<Member> members_;  // the caller's, then one for each device
};

}  // namespace heddle
