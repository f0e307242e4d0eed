// Copies on the device of values that never change while a plan lives.
#pragma once

#include "core/services.h"
#include "executor/device/device_runtime.h"

namespace heddle {

// The copy of `tensor`. A large one is made once and shared by all plans that have `packs`.
// `stream` is synchronised.
Result<Tensor> CopyToStay(const Tensor& tensor, DeviceRuntime& device, Stream& stream,
                          PackCache* packs);

}  // namespace heddle
