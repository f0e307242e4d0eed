// In the place of device/cuda in builds without it.
#include "device/open_cuda.h"

#include "core/error.h"

namespace heddle {

Result<std::shared_ptr<Device>> OpenCudaDevice(const CudaOptions&) {
  return Unimplemented("heddle was built without CUDA");
}

}  // namespace heddle
