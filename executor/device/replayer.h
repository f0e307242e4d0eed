// Replayer: puts the kernels of a section, a block's steps, on the device as one piece of work,
// captured in an earlier run of the section.
//
// Threads: that which dispatches. What it captures is kept in the DeviceRun.
#pragma once

#include <vector>

#include "executor/device/device_session.h"
#include "executor/device/step_launcher.h"

namespace heddle {

class Replayer {
 public:
  Replayer(DeviceSession& session, StepLauncher& launcher, int block)
      : session_(session),
        launcher_(launcher),
        section_(session.device_plan.sections[static_cast<size_t>(block)]),
        kept_(session.kept().captured[static_cast<size_t>(block)]) {}

  // `again`: the section has run before; many have no second run.
  bool CanReplay(bool again) const;
  // The kernels, after what comes before them. `*replayed` false: they cannot be captured, nothing
  // was done.
  Status ReplayKernels(bool* replayed);

 private:
  const void* AddressOf(uint32_t slot);
  // The operands are where they were when the kernels were captured.
  bool Holds();
  // Finds the slots that the kernels read and none of them writes.
  void FindInputs();
  Status Capture();
  // The kernels of all streams, between a fork from the first one and a join with it.
  Status PutCaptured();
  // Memory that is there in the next run too.
  bool InPlace(uint32_t slot);
  Status Replay();

  DeviceSession& session_;
  StepLauncher& launcher_;
  const DevicePlan::Section& section_;
  CapturedSection& kept_;
};

}  // namespace heddle
