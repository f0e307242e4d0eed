// BodyRunner: runs the blocks of control flow that a device executes. The operator's kernel, on the
// thread that dispatches, asks for each run of its block; the block's steps are dispatched then.
//
// A run of the block begins and ends on the first stream: all other streams wait for its first
// mark, and its last mark waits for them (DevicePlan). So the memory of the block's temporaries
// serves each run, and the host goes ahead of the device by two runs at most, unless it waits for
// the condition anyway.
//
// Ownership: keeps memory that copies into the device read, until a later run of the block or the
// end: it outlives DeviceSession::Drain. Threads: that which dispatches.
#pragma once

#include <array>
#include <vector>

#include "executor/device/dispatcher.h"
#include "executor/device/replayer.h"
#include "executor/run/run_state.h"

namespace heddle {

// Dispatches a section's steps: every one in the plan's order, or the kernels as one captured
// piece. `again`: the section has run before.
Status DispatchSection(DeviceSession& session, Dispatcher& dispatcher, StepLauncher& launcher,
                       int block, bool again);

class BodyRunner final : public RunState::DeviceBodies {
 public:
  BodyRunner(DeviceSession& session, Dispatcher& dispatcher, StepLauncher& launcher)
      : session_(session),
        dispatcher_(dispatcher),
        launcher_(launcher),
        bodies_(session.device_plan.sections.size()) {}

  bool Has(int block) const override { return session_.device_plan.Runs(block); }
  Status Run(int block) override;

 private:
  struct Body {
    int64_t runs = 0;
    std::array<std::vector<Tensor>, 2> held;  // what the newest runs' copies read
  };

  DeviceSession& session_;
  Dispatcher& dispatcher_;
  StepLauncher& launcher_;
  std::vector<Body> bodies_;  // per block
};

}  // namespace heddle
