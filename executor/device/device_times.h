// DeviceTimes: when each step's work began and ended on its stream, in a traced run.
#pragma once

#include <memory>
#include <vector>

#include "device/device.h"
#include "executor/plan/device_plan.h"
#include "executor/run/run_state.h"

namespace heddle {

class DeviceTimes {
 public:
  // Records a timed event on the step's stream; to be called twice per step, before and after its
  // work. The first event of all is waited for, so that device times can be converted to host
  // times. `device`: its number in the plan.
  Status Mark(size_t step, uint32_t number, Device& device, Stream& stream);
  // Adds the measured times to the run's trace; to be called when the streams are finished.
  Status Tell(RunState& run, const DevicePlan& plan) const;

 private:
  struct TimeMark {
    size_t step;
    std::unique_ptr<Event> event;
  };
  struct Base {
    std::unique_ptr<Event> event;
    uint64_t ns = 0;  // on the host's clock
  };
  // Finds the host time of a device event.
  static Status Align(Device& device, Stream& stream, Base* base);

  std::vector<Base> bases_;  // per device
  std::vector<TimeMark> marks_;
};

}  // namespace heddle
