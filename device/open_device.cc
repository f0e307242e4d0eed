// Devices by their kind.
#include "core/error.h"
#include "device/open_cuda.h"
#include "heddle/device.h"

namespace heddle {

Result<std::shared_ptr<Device>> OpenDevice(const std::string& kind, const CudaOptions& cuda) {
  if (kind == "emulated") return NewEmulatedDevice();
  if (kind == "cuda") return OpenCudaDevice(cuda);
  return InvalidArgument("there is no device '", kind, "'; there are emulated and cuda");
}

}  // namespace heddle
