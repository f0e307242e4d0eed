#include "executor/plan/device/device_phases.h"

#include <algorithm>

#include "executor/plan/device/insert_copies.h"

namespace heddle {
namespace {

// Whether all kernels wait for the same tasks: a captured graph waits for every task that one of
// its kernels needs.
bool TasksAreForAll(const std::vector<uint32_t>& stream_of, const StreamSync& sync,
                    const DevicePlan& device) {
  const uint32_t* one = nullptr;
  for (uint32_t i = 0; i < stream_of.size(); ++i) {
    if (stream_of[i] == 0 || stream_of[i] > device.compute_streams) continue;
    const uint32_t* clock = &sync.clocks[size_t{i} * sync.streams];
    if (one != nullptr && !std::equal(clock + device.streams, clock + sync.streams, one))
      return false;
    one = clock + device.streams;
  }
  return true;
}

}  // namespace

std::string FindPhases(const Plan& plan, int block, const std::vector<uint32_t>& stream_of,
                       const StreamSync& sync, const DevicePlan& device, bool host_kernels,
                       std::vector<DevicePlan::Phase>* phases) {
  using Phase = DevicePlan::Phase;
  const auto& ins = plan.blocks[block].instructions;
  const uint32_t streams = sync.streams, compute = device.compute_streams;
  const auto is_compute = [&](uint32_t stream) { return stream > 0 && stream <= compute; };
  // Per stream: position of its first step after the kernels.
  std::vector<uint32_t> first_after(streams, ~0u);
  uint32_t kernels = 0, copies = 0;
  const uint32_t marks = block == 0 ? 0 : 1;  // first step of the first stream in a sub-block
  for (uint32_t i = 0; i < ins.size(); ++i) {
    const Instruction& in = ins[i];
    const uint32_t* clock = &sync.clocks[size_t{i} * streams];
    const uint32_t stream = stream_of[i];
    copies += in.op.def == &CopyDef();
    if (in.op.def == &MarkDef()) {
      phases->push_back(i == 0 ? Phase::kBefore : Phase::kAfter);
      continue;
    }
    if (is_compute(stream)) {
      ++kernels;
      phases->push_back(Phase::kCaptured);
      const std::string name = plan.Locate(in).op_type;
      if (in.op.def->has(kControlFlow)) return name + " runs a block";
      if (in.mode == Instruction::Mode::kDynamic) return name + " infers its shapes as it runs";
      if (in.op.def->has(kRandom) && host_kernels) return name + " draws random numbers";
      for (uint32_t l = 0; l < streams; ++l)
        if (!is_compute(l) && clock[l] >= first_after[l])
          return name + " needs what the host does with earlier results of the device";
      continue;
    }
    bool after = clock[1] > marks;
    for (uint32_t l = 2; l <= compute; ++l) after = after || clock[l] > 0;
    phases->push_back(after ? Phase::kAfter : Phase::kBefore);
    if (after) first_after[stream] = std::min(first_after[stream], sync.position[i]);
  }
  if (!TasksAreForAll(stream_of, sync, device))
    return "some kernels need not wait for what the host does for others";
  if (kernels == 0) return "no kernel runs on the device";
  // A graph waits for all copies in, and copies out wait for the graph; without capture, copies and
  // kernels overlap.
  return copies >= 2 * kernels ? "there are few kernels for its copies" : "";
}

}  // namespace heddle
