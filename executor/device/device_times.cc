#include "executor/device/device_times.h"

#include "scheduler/spin.h"

namespace heddle {

// Reads the host's clock before and after an event. If the host was woken late, the two readings
// lie far apart, and another event is tried.
Status DeviceTimes::Align(Device& device, Stream& stream, Base* base) {
  constexpr int kTries = 8;
  constexpr uint64_t kCloseNs = 20000;
  uint64_t least = UINT64_MAX;
  for (int k = 0; k < kTries && least > kCloseNs; ++k) {
    HEDDLE_ASSIGN_OR_RETURN(auto event, device.NewEvent(true));
    const uint64_t before = NowNs();
    HEDDLE_RETURN_IF_ERROR(stream.Record(*event));
    HEDDLE_RETURN_IF_ERROR(event->Wait());
    const uint64_t took = NowNs() - before;
    if (took >= least) continue;
    least = took;
    base->event = std::move(event);
    base->ns = before + took / 2;
  }
  return Status::Ok();
}

Status DeviceTimes::Mark(size_t step, uint32_t number, Device& device, Stream& stream) {
  if (number >= bases_.size()) bases_.resize(number + 1);
  Base& base = bases_[number];
  if (base.event == nullptr) HEDDLE_RETURN_IF_ERROR(Align(device, stream, &base));
  HEDDLE_ASSIGN_OR_RETURN(auto event, device.NewEvent(true));
  HEDDLE_RETURN_IF_ERROR(stream.Record(*event));
  marks_.push_back({step, std::move(event)});
  return Status::Ok();
}

Status DeviceTimes::Tell(RunState& run, const DevicePlan& plan) const {
  for (size_t k = 0; k + 1 < marks_.size(); k += 2) {
    const DeviceStep& step = plan.steps[marks_[k].step];
    const uint32_t stream = step.stream;
    const Base& base = bases_[plan.DeviceOf(stream)];
    HEDDLE_ASSIGN_OR_RETURN(const int64_t begin, marks_[k].event->NanosecondsSince(*base.event));
    HEDDLE_ASSIGN_OR_RETURN(const int64_t end, marks_[k + 1].event->NanosecondsSince(*base.event));
    run.control().trace()->device.push_back({&run.plan().blocks[step.block].instructions[step.at],
                                             static_cast<int>(stream), plan.StreamName(stream),
                                             base.ns + static_cast<uint64_t>(begin),
                                             base.ns + static_cast<uint64_t>(end)});
  }
  return Status::Ok();
}

}  // namespace heddle
