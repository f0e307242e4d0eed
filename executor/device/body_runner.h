// BodyRunner: runs the blocks of control flow that a device executes. The operator's kernel runs on
// the dispatching thread; whenever it asks for a run of its block, the block's steps are
// dispatched.
//
// A run of the block begins and ends on the first stream: all other streams wait for its first
// mark, and its last mark waits for them (DevicePlan). So all runs can use the same memory for the
// block's temporaries. The host is at most two runs ahead of the device, unless it waits for the
// condition anyway.
//
// Ownership: keeps memory that copies into the device read, until a later run of the block or the
// end, and so must outlive DeviceSession::Drain. Threads: the dispatching thread.
#pragma once

#include <array>
#include <vector>

#include "executor/device/dispatcher.h"
#include "executor/device/replayer.h"
#include "executor/run/run_state.h"

namespace heddle {

// Dispatches a section's steps: one by one in the plan's order, or its kernels as one captured
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
    std::array<std::vector<Tensor>, 2> held;  // memory that the last two runs' copies read
  };

  DeviceSession& session_;
  Dispatcher& dispatcher_;
  StepLauncher& launcher_;
  std::vector<Body> bodies_;  // per block
};

}  // namespace heddle
