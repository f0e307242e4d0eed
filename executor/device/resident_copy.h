// Device copies of values that do not change while a plan lives.
#pragma once

#include "core/services.h"
#include "executor/device/device_runtime.h"

namespace heddle {

// Copies `tensor` to the device. A large copy is made once and shared by all plans that have
// `packs`. `stream` is synchronised.
Result<Tensor> CopyToStay(const Tensor& tensor, DeviceRuntime& device, Stream& stream,
                          PackCache* packs);

}  // namespace heddle
