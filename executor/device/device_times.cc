#include "executor/device/device_times.h"

#include "executor/device/device_errors.h"
#include "scheduler/spin.h"

namespace heddle {

Status DeviceTimes::Mark(size_t step, Device& device, Stream& stream) {
  if (base_ == nullptr) {
    HEDDLE_ASSIGN_OR_RETURN(base_, device.NewEvent(true));
    HEDDLE_RETURN_IF_ERROR(stream.Record(*base_));
    HEDDLE_RETURN_IF_ERROR(base_->Wait());
    base_ns_ = NowNs();
  }
  HEDDLE_ASSIGN_OR_RETURN(auto event, device.NewEvent(true));
  HEDDLE_RETURN_IF_ERROR(stream.Record(*event));
  marks_.push_back({step, std::move(event)});
  return Status::Ok();
}

Status DeviceTimes::Tell(RunState& run, const DevicePlan& plan) const {
  for (size_t k = 0; k + 1 < marks_.size(); k += 2) {
    HEDDLE_ASSIGN_OR_RETURN(const int64_t begin, marks_[k].event->NanosecondsSince(*base_));
    HEDDLE_ASSIGN_OR_RETURN(const int64_t end, marks_[k + 1].event->NanosecondsSince(*base_));
    const uint32_t lane = plan.steps[marks_[k].step].lane;
    run.control().AddDeviceWork(run.plan().blocks[0].instructions[marks_[k].step],
                                static_cast<int>(lane), StreamName(plan, lane),
                                base_ns_ + static_cast<uint64_t>(begin),
                                base_ns_ + static_cast<uint64_t>(end));
  }
  return Status::Ok();
}

}  // namespace heddle
