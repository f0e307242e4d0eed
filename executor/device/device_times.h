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
  // `device`: its number in the plan.
  Status Mark(size_t step, uint32_t number, Device& device, Stream& stream);
  // Tells `run` what was measured; after the streams are done.
  Status Tell(RunState& run, const DevicePlan& plan) const;

 private:
  struct TimeMark {
    size_t step;
    std::unique_ptr<Event> event;
  };
  struct Base {
    std::unique_ptr<Event> event;
    uint64_t ns = 0;  // of the host
  };
  // Finds the time of an event in the host's time.
  static Status Align(Device& device, Stream& stream, Base* base);

  std::vector<Base> bases_;  // per device
  std::vector<TimeMark> marks_;
};

}  // namespace heddle
