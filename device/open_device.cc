// Devices by their kind.
#include "core/error.h"
#include "heddle/device.h"

namespace heddle {

Result<std::shared_ptr<Device>> OpenDevice(const std::string& kind) {
  if (kind == "emulated") return NewEmulatedDevice();
  if (kind == "cuda") return Unimplemented("heddle was built without CUDA");
  return InvalidArgument("there is no device '", kind, "'; there are emulated and cuda");
}

}  // namespace heddle
