// The kinds of devices that OpenDevice knows by name.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "heddle/device.h"

namespace heddle {

struct DeviceKind {
  std::string_view name;  // letters and digits
  // Opens the device with this number, from 0. kInvalidArgument: there is none with that number;
  // another error says why this process cannot use the kind. Any thread.
  Result<std::shared_ptr<Device>> (*open)(int number, const CudaOptions& cuda);
};

// The list in open_device.cc, in the order of messages.
std::span<const DeviceKind> DeviceKinds();

}  // namespace heddle
