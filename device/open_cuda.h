// The CUDA device; an error where heddle was built without it, or where there is no card.
#pragma once

#include <memory>

#include "heddle/device.h"

namespace heddle {

Result<std::shared_ptr<Device>> OpenCudaDevice(const CudaOptions& options);

}  // namespace heddle
