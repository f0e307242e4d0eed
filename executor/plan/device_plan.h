// DevicePlan: what a Plan says besides its instructions when some of them run on a device.
//
// Every slot has a place: the host or the device. A value that both need has two slots, and an
// instruction between them copies. One thread, the host, goes through the steps in order, or, with
// several devices, one for the host's and one for each device's; a step is done by the host at
// once, put on a stream, or, a task, handed over to the executor's other threads.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/op_context.h"
#include "executor/plan/plan.h"

namespace heddle {

struct DeviceStep {
  enum class Kind : uint8_t {
    kHost,      // the host executes the instruction
    kTask,      // another thread of the host does
    kAwait,     // the host waits, for what the next steps read
    kLaunch,    // a kernel of the device
    kShare,     // the output looks at the input's memory
    kCopyIn,    // host to device
    kCopyOut,   // device to host
    kCopyPeer,  // device to device
    kBlocks,    // the host runs an operator whose blocks' instructions are steps
    kMark,      // nothing: the border of such a block
  };
  static constexpr uint32_t kNone = ~0u;
  Kind kind = Kind::kHost;
  uint32_t block = 0, at = 0;             // the instruction
  uint32_t lane = 0;                      // 0: the host; a stream, from 1; a task's: see task_lanes
  uint32_t wait_begin = 0, wait_end = 0;  // in DevicePlan::waits
  // In DevicePlan::task_waits: what is finished before the host does the step or puts it on its
  // stream, see TaskHost::DispatchAround; of a task, what it needs besides the one before it on
  // its lane.
  uint32_t task_begin = 0, task_end = 0;
  uint32_t record = kNone;  // event, recorded behind the step
  uint32_t task = kNone;    // kTask: in DevicePlan::tasks
  // kLaunch: operands by position in `operands`, which are slots of the device; `host`: for each
  // the slot that has its contents on the host, where shape inference or preparation reads them.
  BoundOp call;
  std::vector<uint32_t> operands, host;
};

// A step that another thread of the host executes. It may start once it was handed over, `needs`
// other tasks have finished, and the events it waits for are reached.
struct DeviceTask {
  uint32_t step = 0;
  uint32_t needs = 0;
  std::vector<uint32_t> next;  // tasks that need this one
};

struct DevicePlan {
  // The steps of a block, parallel to its instructions.
  struct Section {
    uint32_t begin = 0, end = 0;
    bool captured = false;  // its kernels can be captured, see phases
  };
  std::vector<DeviceStep> steps;
  std::vector<Section> sections;  // per block; of no steps: the host runs it
  std::vector<uint32_t> waits;    // events
  uint32_t events = 0;
  uint32_t lanes = 1;  // the host's and those of the streams
  // Tasks are on lanes behind these, one after another on each. At most so many are executed at
  // once.
  uint32_t task_lanes = 0;
  std::vector<DeviceTask> tasks;     // in the order of steps
  std::vector<uint32_t> task_waits;  // tasks
  // Slots of values that never change while the plan lives, on the host and on the device: they are
  // copied once.
  std::vector<std::pair<uint32_t, uint32_t>> resident;
  uint32_t devices = 1;
  // Of each device, one device's lanes behind another's: the first lanes of streams, and the next
  // ones; then one for copies out.
  uint32_t compute_streams = 0, copy_in_streams = 1, lanes_of_device = 1;
  std::vector<int> priorities;  // of the compute streams, see Device::NewStream
  uint32_t copies = 0, peer_copies = 0;
  // Places in one block of a device's memory, per slot: they hold for what has the plan's dtype
  // and shape.
  static constexpr size_t kNoOffset = ~size_t{0};
  std::vector<size_t> offsets;
  std::vector<size_t> arena_bytes;  // per device
  // A section's kernels can be captured: what is not theirs comes either before or after all of
  // them. Phases are parallel to the steps; those of other sections mean nothing
  // (PlanStats::no_capture says why block 0's is one).
  enum class Phase : uint8_t { kBefore, kCaptured, kAfter };
  std::vector<Phase> phases;
  std::vector<uint32_t> recorder;  // per event: the step
  // With several devices, per step: the number of barriers before it. A barrier is a step that is
  // finished before any later step is dispatched.
  std::vector<uint32_t> barriers_before;
  std::vector<bool> is_barrier;
  // With several devices, per event: a step of another thread waits for it.
  std::vector<bool> crosses;

  // Precondition: a device executes the instruction's block.
  const DeviceStep& StepOf(const Plan& plan, const Instruction& in) const;
  const Section& main() const { return sections[0]; }
  bool Runs(int block) const {
    return sections[static_cast<size_t>(block)].begin < sections[static_cast<size_t>(block)].end;
  }
  // The thread that dispatches a lane's steps where several do: 0 the host's own and tasks, k + 1
  // those of device k.
  uint32_t ThreadOf(uint32_t lane) const {
    return lane == 0 || lane >= lanes ? 0 : 1 + DeviceOf(lane);
  }
  // The device whose stream a lane is. Precondition: it is a stream.
  uint32_t DeviceOf(uint32_t lane) const { return (lane - 1) / lanes_of_device; }
  // "compute 0", "copies in" (then "copies in 1" …), "copies out"; with several devices
  // "1: compute 0".
  std::string StreamName(uint32_t lane) const;
};

}  // namespace heddle
