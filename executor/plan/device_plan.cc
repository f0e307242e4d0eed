#include "executor/plan/device_plan.h"

#include "core/error.h"

namespace heddle {

std::string DevicePlan::StreamName(uint32_t lane) const {
  const std::string device = devices > 1 ? StrCat(DeviceOf(lane), ": ") : std::string();
  const uint32_t at = (lane - 1) % lanes_of_device, compute = compute_streams;
  if (at < compute) return StrCat(device, "compute ", at);
  if (at >= compute + copy_in_streams) return device + "copies out";
  return at == compute ? device + "copies in" : StrCat(device, "copies in ", at - compute);
}

}  // namespace heddle
