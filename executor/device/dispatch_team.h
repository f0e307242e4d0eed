// DispatchTeam: dispatches a plan of several devices on several threads: for each device one puts
// its steps on its streams, while the calling thread executes the host's and, with a pool, has
// tasks executed.
//
// A thread waits where a step needs what another thread has not dispatched yet, or what another
// device has not done; the others go on (StepWalker, DispatchBoard).
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

  // False: the crew has no time, nothing was done. Precondition: it has a thread for each device.
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
