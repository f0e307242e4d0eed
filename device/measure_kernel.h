// Measures the time of a kernel on its device.
#pragma once

#include <vector>

#include "device/device.h"

namespace heddle {

// The median time in ns of some executions of `call`, by the device's clock. `operands`: values
// with dtypes and shapes; where `on_device` says so, they are given memory of the device's that
// holds zeros. 0: the device has no room, the kernel fails on such values, or it takes no time that
// events can tell. What others do on the device disturbs the times.
double MeasureKernel(Device& device, const KernelCall& call, const std::vector<Value>& operands,
                     const std::vector<bool>& on_device);

}  // namespace heddle
