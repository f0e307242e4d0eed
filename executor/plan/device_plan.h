// DevicePlan: the part of a Plan for instructions that run on devices.
//
// Every slot has a place: the host or a device. A value needed at two places has two slots, with a
// copying instruction between them. One thread goes through the steps in order; with several
// devices there is one thread for the host's steps and one per device. A step is executed by the
// host at once, put on a stream, or, for a task, handed over to the executor's other threads.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/bound_op.h"
#include "executor/plan/plan.h"

namespace heddle {

struct DeviceStep {
  enum class Kind : uint8_t {
    kHost,      // the host executes the instruction
    kTask,      // another thread of the host does
    kAwait,     // the host waits, since later steps read the value
    kLaunch,    // a kernel of the device
    kShare,     // the output is a view of the input
    kCopyIn,    // host to device
    kCopyOut,   // device to host
    kCopyPeer,  // device to device
    kBlocks,    // the host runs an operator whose block is a section of steps
    kMark,      // nothing: the first or last step of such a section
  };
  static constexpr uint32_t kNone = ~0u;
  Kind kind = Kind::kHost;
  uint32_t block = 0, at = 0;             // the instruction
  uint32_t stream = 0;                    // 0: the host; from 1: streams; then those of tasks
  uint32_t wait_begin = 0, wait_end = 0;  // in DevicePlan::waits
  // In DevicePlan::task_waits: the tasks that must have finished before the step is dispatched
  // (TaskHost); for a task, those that it needs besides the one before it on its stream.
  uint32_t task_begin = 0, task_end = 0;
  uint32_t record = kNone;  // event to be recorded after the step
  uint32_t task = kNone;    // kTask: index in DevicePlan::tasks
  // kLaunch: the operands of `call` are positions in `operands`, which lists slots of the device.
  // `host`: for each, the slot with its contents on the host, if shape inference or preparation
  // reads them.
  BoundOp call;
  std::vector<uint32_t> operands, host;
};

// A step that another thread of the host executes. It may start when it has been handed over,
// `needs` other tasks have finished, and the events that it waits for are reached.
struct DeviceTask {
  uint32_t step = 0;
  uint32_t needs = 0;
  std::vector<uint32_t> next;  // tasks that wait for this one
};

struct DevicePlan {
  // The steps of a block, parallel to its instructions.
  struct Section {
    uint32_t begin = 0, end = 0;
    bool captured = false;  // its kernels can be captured, see phases
  };
  std::vector<DeviceStep> steps;
  std::vector<Section> sections;  // per block; without steps: the host runs the block
  std::vector<uint32_t> waits;    // events
  uint32_t events = 0;
  uint32_t streams = 1;  // number of streams, the host's included, without those of tasks
  // Tasks are on streams of their own, numbered after the others, and those on one stream run one
  // after another. So this is the most tasks that run at the same time.
  uint32_t task_streams = 0;
  std::vector<DeviceTask> tasks;     // in the order of their steps
  std::vector<uint32_t> task_waits;  // indices of tasks
  // Pairs of slots, on the host and on the device, of values that never change while the plan lives
  // and are copied once.
  std::vector<std::pair<uint32_t, uint32_t>> resident;
  uint32_t devices = 1;
  // The streams of a device: those for kernels, those for copies in, and one for copies out.
  // Devices follow one another.
  uint32_t compute_streams = 0, copy_in_streams = 1, streams_of_device = 1;
  std::vector<int> priorities;  // of the streams for kernels, see Device::NewStream
  uint32_t copies = 0, peer_copies = 0;
  // Per slot: its offset in the device's arena, valid for a value with the plan's dtype and shape.
  static constexpr size_t kNoOffset = ~size_t{0};
  std::vector<size_t> offsets;
  std::vector<size_t> arena_bytes;  // per device
  // The phase of each step in a section whose kernels can be captured: all other steps come before
  // or after the kernels. Phases of other sections are meaningless (PlanStats::no_capture says why
  // block 0's is one).
  enum class Phase : uint8_t { kBefore, kCaptured, kAfter };
  std::vector<Phase> phases;
  std::vector<uint32_t> recorder;  // per event: the step after which it is recorded
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
  // With several devices: the thread that dispatches a stream's steps. 0: the thread of the host's
  // steps and of tasks; k + 1: the thread of device k.
  uint32_t ThreadOf(uint32_t stream) const {
    return stream == 0 || stream >= streams ? 0 : 1 + DeviceOf(stream);
  }
  // The device of a stream. Precondition: 0 < stream < streams.
  uint32_t DeviceOf(uint32_t stream) const { return (stream - 1) / streams_of_device; }
  // "compute 0", "copies in" (then "copies in 1" …), "copies out"; with several devices
  // "1: compute 0".
  std::string StreamName(uint32_t stream) const;
};

}  // namespace heddle
