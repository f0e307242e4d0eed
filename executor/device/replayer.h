// Replayer: puts the kernels of a run on the device as one piece of work, captured in an earlier
// run. In the first run of all nothing is captured: many plans have no second one.
//
// Threads: that which dispatches. What it captures is kept in the DeviceRun.
#pragma once

#include <vector>

#include "executor/device/device_session.h"
#include "executor/device/step_launcher.h"

namespace heddle {

class Replayer {
 public:
  Replayer(DeviceSession& session, StepLauncher& launcher)
      : session_(session), launcher_(launcher) {}

  bool CanReplay() const;
  // The kernels, after what comes before them. `*replayed` false: they cannot be captured, nothing
  // was done.
  Status ReplayKernels(bool* replayed);

 private:
  // Everything that captured kernels take for granted about where their operands are.
  std::vector<const void*> Addresses();
  Status Capture();
  // The kernels of all streams, between a fork from the first one and a join with it.
  Status PutCaptured();
  // Memory that is there in the next run too.
  bool InPlace(uint32_t slot);
  Status Replay();

  DeviceSession& session_;
  StepLauncher& launcher_;
};

}  // namespace heddle
