// One run of a plan of which a device has a part, and what is kept from run to run.
//
// Threads: a runner belongs to the thread that runs it; with tasks, to that which dispatches, but
// for CanStart and RunTask, which others call meanwhile.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "executor/device/device_errors.h"
#include "executor/device/device_runtime.h"
#include "executor/device/device_tasks.h"
#include "executor/device/device_times.h"
#include "executor/plan/device_plan.h"
#include "executor/run/run_state.h"
#include "scheduler/host_pool.h"
#include "scheduler/kernel_arena.h"

namespace heddle {

// What a RunState keeps for its runs.
struct DeviceRun {
  std::vector<std::unique_ptr<Event>> events;  // of the plan
  std::unique_ptr<Event> done;                 // of a call that the host waits for
  Services services;                           // of kernels on streams
  bool ran = false;                            // a run has come to its end
  bool replayed = false;                       // the newest run had a graph
  // The kernels of a run as one piece of work. It holds while they find their operands where they
  // were when it was captured: see DeviceRunner::Addresses.
  std::unique_ptr<Graph> graph;
  std::vector<const void*> addresses;
  std::vector<std::pair<uint32_t, Value>> results;  // per slot that is read after the kernels
  // Between the captured kernels and the rest, by lane; [0]: the kernels are done.
  std::vector<std::unique_ptr<Event>> borders;
  bool refused = false;  // it cannot be captured
};

class DeviceRunner {
 public:
  DeviceRunner(RunState& run, DeviceRuntime& device, HostPool* pool, KernelArena& host,
               KernelArena& streams)
      : run_(run),
        plan_(run.plan()),
        device_plan_(*run.plan().device),
        device_(device),
        pool_(pool),
        host_(host),
        kernels_(streams) {}

  Status Run();

 private:
  using Kind = DeviceStep::Kind;
  using Phase = DevicePlan::Phase;

  const Instruction& At(size_t i) const { return plan_.blocks[0].instructions[i]; }
  Stream& StreamOf(const DeviceStep& step) { return *set_->streams[step.lane - 1]; }
  Services& services() { return run_.device_run()->services; }

  // Events, and what is copied once.
  Status Prepare();
  // Memory for the plan's static temporaries. Where there is not enough in one piece they are given
  // theirs one by one.
  Status TakeArena();
  Status Upload(uint32_t host, uint32_t device);

  Status Dispatch();
  Status Step(size_t i);
  Status HostStep(size_t i);
  // The host waits for the step's events.
  Status AwaitEvents(size_t i);
  // What comes after captured kernels waits for all of them.
  Event& EventOf(uint32_t event);
  // What the instruction was the last to use. Memory of the device goes back in the order of
  // streams; that of the host is held where a stream reads it.
  Status Release(const Instruction& in);
  // Waits for all streams and takes their failures; the first one of all is the run's, unless it
  // ended for another reason.
  Status Drain(Status status);

  // --- around tasks of the host: device_around.cc ---

  Status DispatchWithTasks();
  // Goes on with the run as far as it can before a task has finished; `*done`: to its end.
  Status Advance(bool* done);
  // ... with steps from next_ on, those of the phase where there is one, in their order; those that
  // have to wait for a task are put off, and what comes after them goes on as far as it may.
  Status DispatchAround(std::optional<Phase> phase, bool* done);
  bool KernelsCanStart();
  bool CanDispatch(size_t i) const;
  bool IsBarrier(size_t i) const;
  void PutOff(uint32_t i);
  Status DispatchPutOff();
  std::span<const uint32_t> TasksBefore(size_t i) const {
    const DeviceStep& step = device_plan_.steps[i];
    return std::span(device_plan_.task_waits)
        .subspan(step.task_begin, step.task_end - step.task_begin);
  }
  bool CanStart(const DeviceTask& task);
  DeviceTasks::Error RunTask(const DeviceTask& task, int participant);

  // --- with the kernels captured: device_capture.cc ---

  // In the first run of all nothing is captured: many plans have no second one.
  bool CanReplay() const;
  Status DispatchPhase(Phase phase);
  Status DispatchWithGraph();
  // The kernels, after what comes before them. `*replayed` false: they cannot be captured, nothing
  // was done.
  Status ReplayKernels(bool* replayed);
  // Everything that captured kernels take for granted about where their operands are.
  std::vector<const void*> Addresses();
  Status Capture();
  // The kernels of all streams, between a fork from the first one and a join with it.
  Status PutCaptured();
  // Memory that is there in the next run too.
  bool InPlace(uint32_t slot);
  Status Replay();

  // --- what a step puts on its stream: device_launch.cc ---

  Status Put(size_t i);
  // Memory of the device for a slot that work of the step writes.
  Status Provide(size_t i, uint32_t slot, DType dtype, const Shape& shape);
  void Use(uint32_t slot, Stream& stream);
  Status CopyIn(size_t i);
  // In memory from which copies need no detour, where there is some. `changes`: the host may write
  // to the tensor before the copy is done.
  Tensor Pinned(const Tensor& t, bool changes);
  Status CopyOut(size_t i);
  Status LaunchShaped(size_t i);
  static bool IsInput(const Instruction& in, uint32_t slot) {
    return std::find(in.op.in.begin(), in.op.in.end(), slot) != in.op.in.end();
  }
  // The inputs' contents, on the host.
  Status FetchOperands(const DeviceStep& step, std::vector<Value>* values);
  // Shapes are inferred now. Sequence offsets are known when the kernel is done, so the host waits.
  Status LaunchDynamic(size_t i);
  Status Launch(size_t i, KernelFn fn, const KernelState* state,
                std::function<void(size_t, const LoD&)> offsets);
  // Looks for NaN and infinity in copies of what the step writes.
  Status CheckValues(size_t i);

  Status Explain(const Status& s, uint32_t lane = 0) const {
    return ExplainFailure(s, device_.device(), device_plan_, lane);
  }
  // The device did not take the step, or the host could not make it ready.
  Status Refused(const Status& s, size_t i) {
    return Explain(s, device_plan_.steps[i].lane).At(plan_.Locate(At(i)));
  }
  const std::string& NameOf(uint32_t slot) const {
    return plan_.program->vars[plan_.slots[slot].var].name;
  }

  RunState& run_;
  const Plan& plan_;
  const DevicePlan& device_plan_;
  DeviceRuntime& device_;
  HostPool* pool_;
  KernelArena& host_;
  KernelArena& kernels_;
  std::unique_ptr<StreamSet> set_;
  BufferRef arena_;           // none: temporaries are allocated one by one
  DeviceTimes times_;         // of a run that is traced
  std::vector<Tensor> held_;  // memory of the host that streams read
  std::vector<std::shared_ptr<const KernelState>> states_;
  int participant_ = 0;  // the thread that dispatches, as watchers of the run know it
  // Of a plan with tasks; by the thread that dispatches.
  enum class Stage : uint8_t { kStart, kBefore, kKernels, kOneByOne, kAfter, kAll };
  DeviceTasks* tasks_ = nullptr;
  Stage stage_ = Stage::kStart;
  uint32_t next_ = 0;                    // step
  std::vector<uint32_t> put_off_;        // steps, in their order
  std::vector<bool> is_put_off_;         // per step
  std::vector<uint32_t> put_off_lanes_;  // how many of each lane
  bool failed_on_device_ = false;
};

}  // namespace heddle
