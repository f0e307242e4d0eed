// DeviceSession: what the parts of one run with a device share: the plan, the run's streams and
// memory, and the objects kept from run to run.
//
//   DeviceInterpreter::Run  opens the session, dispatches the steps, closes it
//   Dispatcher              dispatches one step, of any kind
//   StepLauncher            puts a step's copy or kernel on its stream
//   BodyRunner              dispatches the steps of a block whenever its operator asks
//   Replayer                puts a section's kernels on the device as one captured piece
//   TaskHost                dispatches beside tasks, which other threads of the host execute
//   DispatchTeam            dispatches for several devices, with a thread for each
//
// Ownership: has the streams from Open to Close; the RunState keeps the DeviceRun. Threads:
// everything belongs to the dispatching thread, except that threads with tasks read the plans, use
// `host` and `run` as RunState allows, and call EventOf, Explain and At. In a team, each thread
// uses the streams of its own device.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/services.h"
#include "executor/device/device_errors.h"
#include "executor/device/device_runtime.h"
#include "executor/device/device_tokens.h"
#include "executor/plan/device_plan.h"
#include "executor/run/run_state.h"
#include "scheduler/kernel_arena.h"

namespace heddle {

// The kernels of a section captured as one piece of work. It can be replayed as long as the
// kernels' operands are at the addresses that they had when it was captured.
struct CapturedSection {
  std::unique_ptr<Graph> graph;
  const void* arena = nullptr;
  // Per slot that no kernel writes: its address.
  std::vector<std::pair<uint32_t, const void*>> inputs;
  std::vector<std::pair<uint32_t, Value>> results;  // per slot that the kernels write
  bool replayed = false;                            // in the section's latest run
  bool refused = false;                             // it cannot be captured
};

// Objects that a RunState keeps from run to run.
struct DeviceRun {
  std::vector<std::unique_ptr<Event>> events;  // the plan's events
  std::vector<std::unique_ptr<Event>> done;    // per device: for calls that the host waits for
  Services services;                           // for kernels on streams
  bool ran = false;                            // a run has completed
  std::vector<CapturedSection> captured;       // per block
  std::vector<DeviceTokens> tokens;            // per device
  // Per stream: between the captured kernels and the rest; [0]: the kernels are finished.
  std::vector<std::unique_ptr<Event>> borders;
  // Per block that a device runs: the ends of its last two runs, see BodyRunner.
  std::vector<std::array<std::unique_ptr<Event>, 2>> turns;
};

class DeviceSession {
 public:
  // `host_arena`: for the host's kernels; `kernel_arena`: for kernels that a device borrows from
  // the host.
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

  // Acquires the streams.
  Status Open();
  // Makes events, takes memory, and uploads constants. Throws std::bad_alloc.
  Status Prepare();
  // Waits for all streams and collects their failures. The result is `status` if that is an error
  // which the streams do not know more about (`on_device` is false), else the first failure of all.
  Status Drain(Status status, bool on_device);
  // After Drain: gives streams and memory back.
  void Close();

  const Instruction& At(size_t i) const {
    return plan.blocks[StepAt(i).block].instructions[StepAt(i).at];
  }
  const DeviceStep& StepAt(size_t i) const { return device_plan.steps[i]; }
  // Stream k + 1 of the plan.
  Stream& stream(uint32_t k) {
    return *sets_[k / device_plan.streams_of_device]->streams[k % device_plan.streams_of_device];
  }
  DeviceRuntime& RuntimeOf(const DeviceStep& step) {
    return *devices[device_plan.DeviceOf(step.stream)];
  }
  Stream& StreamOf(const DeviceStep& step) { return stream(step.stream - 1); }
  DeviceTokens& TokensOf(const DeviceStep& step) {
    return kept().tokens[device_plan.DeviceOf(step.stream)];
  }
  DeviceRun& kept() { return *run.device_run(); }
  Services& services() { return kept().services; }
  // The plan's event; if its step was captured, the event after all captured kernels.
  Event& EventOf(uint32_t event);

  Status ExplainOf(uint32_t device, const Status& s) const {
    return ExplainFailure(s, devices[device]->device(), device_plan, 0);
  }
  // An error of a stream; 0: of the first device.
  Status Explain(const Status& s, uint32_t number) const {
    const uint32_t at =
        number > 0 && number < device_plan.streams ? device_plan.DeviceOf(number) : 0;
    return ExplainFailure(s, devices[at]->device(), device_plan, number);
  }
  // The error for a step that the device did not accept, or that the host could not prepare.
  Status Refused(const Status& s, size_t i) const {
    return Explain(s, StepAt(i).stream).At(plan.Locate(At(i)));
  }

  RunState& run;
  const Plan& plan;
  const DevicePlan& device_plan;
  const DeviceRuntimes& devices;
  KernelArena& host;
  KernelArena& kernels;
  std::vector<BufferRef> arenas;  // per device; empty: temporaries are allocated one by one

 private:
  Status MakeKept();
  // Takes memory for the plan's static temporaries. If there is not enough in one piece, they are
  // allocated one by one.
  Status TakeArena(uint32_t device);
  Status Upload(uint32_t from, uint32_t to);

  std::vector<std::unique_ptr<StreamSet>> sets_;  // per device
};

}  // namespace heddle
