// The state that the parts of one run with a device share: the plan, the streams and memory of this
// run, and the objects kept from run to run.
//
//   DeviceInterpreter::Run   opens the session, has the steps dispatched, closes it
//     Dispatcher             takes one step after another, whatever it is
//       StepLauncher         puts the step's copy or kernel on its stream
//     BodyRunner             has the steps of a block dispatched, each time its operator asks
//     Replayer               puts a section's kernels on the device as one captured piece
//     TaskHost               dispatches around tasks, which other threads of the host execute
//     DispatchTeam           with several devices: a thread for each dispatches
//
// Ownership: has the streams from Open to Close; the RunState keeps the DeviceRun. Threads: all
// belongs to the thread that dispatches, but that threads with tasks read the plans, use `host` and
// `run` as RunState says, and call EventOf, Explain and At meanwhile; in a team, each thread uses
// the streams of its device.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "executor/device/device_errors.h"
#include "executor/device/device_runtime.h"
#include "executor/device/device_tokens.h"
#include "executor/plan/device_plan.h"
#include "executor/run/run_state.h"
#include "scheduler/kernel_arena.h"

namespace heddle {

// The kernels of a section as one piece of work. It holds while they find their operands where they
// were when it was captured.
struct CapturedSection {
  std::unique_ptr<Graph> graph;
  const void* arena = nullptr;
  std::vector<std::pair<uint32_t, const void*>> inputs;  // per slot that is not written inside
  std::vector<std::pair<uint32_t, Value>> results;       // per slot that the kernels write
  bool replayed = false;                                 // in the newest run of the section
  bool refused = false;                                  // it cannot be captured
};

// Objects that a RunState keeps for its runs.
struct DeviceRun {
  std::vector<std::unique_ptr<Event>> events;  // of the plan
  std::vector<std::unique_ptr<Event>> done;    // per device: of a call that the host waits for
  Services services;                           // of kernels on streams
  bool ran = false;                            // a run has come to its end
  std::vector<CapturedSection> captured;       // per block
  std::vector<DeviceTokens> tokens;            // per device
  // Between the captured kernels and the rest, by lane; [0]: the kernels are done.
  std::vector<std::unique_ptr<Event>> borders;
  // Per block that a device runs: behind every other run of it, see BodyRunner.
  std::vector<std::array<std::unique_ptr<Event>, 2>> turns;
};

class DeviceSession {
 public:
  // `host_arena`: where the host's kernels execute; `kernel_arena`: those that a device borrows.
  DeviceSession(RunState& r, const DeviceRuntimes& d, KernelArena& host_arena,
                KernelArena& kernel_arena)
      : run(r),
        plan(r.plan()),
        device_plan(*r.plan().device),
        devices(d),
        host(host_arena),
        kernels(kernel_arena),
        arenas(device_plan.devices),
        sets_(device_plan.devices) {}

  // Takes streams.
  Status Open();
  // Makes events and memory ready, and copies what is copied once. Throws std::bad_alloc.
  Status Prepare();
  // Waits for all streams and takes their failures; the first one of all is the run's, unless it
  // ended, with `status`, for another reason. `on_device`: the streams know more about that.
  Status Drain(Status status, bool on_device);
  // After Drain: gives up streams and memory.
  void Close();

  const Instruction& At(size_t i) const {
    return plan.blocks[StepAt(i).block].instructions[StepAt(i).at];
  }
  const DeviceStep& StepAt(size_t i) const { return device_plan.steps[i]; }
  // Of lane k + 1.
  Stream& stream(uint32_t k) {
    return *sets_[k / device_plan.lanes_of_device]->streams[k % device_plan.lanes_of_device];
  }
  DeviceRuntime& RuntimeOf(const DeviceStep& step) {
    return *devices[device_plan.DeviceOf(step.lane)];
  }
  Stream& StreamOf(const DeviceStep& step) { return stream(step.lane - 1); }
  DeviceTokens& TokensOf(const DeviceStep& step) {
    return kept().tokens[device_plan.DeviceOf(step.lane)];
  }
  DeviceRun& kept() { return *run.device_run(); }
  Services& services() { return kept().services; }
  // The plan's event; what comes after captured kernels waits for all of them.
  Event& EventOf(uint32_t event);

  Status ExplainOf(uint32_t device, const Status& s) const {
    return ExplainFailure(s, devices[device]->device(), device_plan, 0);
  }
  // Of a lane's stream; 0: of the first device.
  Status Explain(const Status& s, uint32_t lane) const {
    const uint32_t at = lane > 0 && lane < device_plan.lanes ? device_plan.DeviceOf(lane) : 0;
    return ExplainFailure(s, devices[at]->device(), device_plan, lane);
  }
  // The device did not take the step, or the host could not make it ready.
  Status Refused(const Status& s, size_t i) const {
    return Explain(s, StepAt(i).lane).At(plan.Locate(At(i)));
  }

  RunState& run;
  const Plan& plan;
  const DevicePlan& device_plan;
  const DeviceRuntimes& devices;
  KernelArena& host;
  KernelArena& kernels;
  std::vector<BufferRef> arenas;  // per device; none: temporaries are allocated one by one

 private:
  Status MakeKept();
  // Memory for the plan's static temporaries. Where there is not enough in one piece they are given
  // theirs one by one.
  Status TakeArena(uint32_t device);
  Status Upload(uint32_t from, uint32_t to);

  std::vector<std::unique_ptr<StreamSet>> sets_;  // per device
};

}  // namespace heddle
