// When the streams did what, in a run that is traced.
#pragma once

#include <memory>
#include <vector>

#include "device/device.h"
#include "executor/plan/device_plan.h"
#include "executor/run/run_state.h"

namespace heddle {

class DeviceTimes {
 public:
  // Puts a timed event on the step's stream; two a step, around its work. The first of all is
  // waited for, so that times of the device can be told in the host's.
  Status Mark(size_t step, Device& device, Stream& stream);
  // Tells `run` what was measured; after the streams are done.
  Status Tell(RunState& run, const DevicePlan& plan) const;

 private:
  struct TimeMark {
    size_t step;
    std::unique_ptr<Event> event;
  };
  std::unique_ptr<Event> base_;
  uint64_t base_ns_ = 0;
  std::vector<TimeMark> marks_;
};

}  // namespace heddle
