// For builds without CUDA; in others device/cuda/cuda_device.cc takes its place.
#include "device/open_cuda.h"

#include "core/error.h"

namespace heddle {

Result<std::shared_ptr<Device>> OpenCudaDevice(const CudaOptions&) {
  return Unimplemented("heddle was built without CUDA");
}

}  // namespace heddle
