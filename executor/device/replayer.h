// Replayer: puts the kernels of a section (a block's steps) on the device as one piece of work that
// was captured in an earlier run of the section.
//
// Threads: the dispatching thread. What it captures is kept in the DeviceRun.
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

  // `again`: the section has run before. It is not captured in its first run, since many have no
  // second one.
  bool CanReplay(bool again) const;
  // Puts the kernels on the device. `*replayed` is false if they cannot be captured; nothing was
  // done then.
  Status ReplayKernels(bool* replayed);

 private:
  const void* AddressOf(uint32_t slot);
  // Whether the operands are at the addresses that they had when the kernels were captured.
  bool Holds();
  // Finds the slots that the kernels read and none of them writes.
  void FindInputs();
  Status Capture();
  // Puts the kernels of all streams between a fork from the first stream and a join with it.
  Status PutCaptured();
  // Whether the slot's memory will be the same in the next run.
  bool InPlace(uint32_t slot);
  Status Replay();

  DeviceSession& session_;
  StepLauncher& launcher_;
  const DevicePlan::Section& section_;
  CapturedSection& kept_;
};

}  // namespace heddle
