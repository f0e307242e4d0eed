#include "executor/device/resident_copy.h"

#include "core/error.h"

namespace heddle {
namespace {

struct ResidentCopy {
  Tensor tensor;
  Status status;  // why there is no tensor
};

std::unique_ptr<ResidentCopy> Copy(const Tensor& t, DeviceRuntime& device, Stream& stream) {
  auto copy = std::make_unique<ResidentCopy>();
  auto memory = device.memory().Allocate(t.bytes(), nullptr);
  if (!memory.ok()) {
    copy->status = memory.status();
    return copy;
  }
  Tensor made(t.dtype(), t.shape(), *std::move(memory));
  if (t.has_lod()) made.set_lod(t.lod());
  copy->status = stream.CopyToDevice(made.mutable_raw(), t.raw(), t.bytes(), 0);
  if (Status s = stream.Synchronize(); copy->status.ok()) copy->status = std::move(s);
  if (copy->status.ok()) copy->tensor = std::move(made);
  return copy;
}

}  // namespace

Result<Tensor> CopyToStay(const Tensor& tensor, DeviceRuntime& device, Stream& stream,
                          PackCache* packs) {
  if (tensor.buffer()) {
    // The device is part of the key: other executors of the program may have other devices.
    const std::string key = StrCat("device ", reinterpret_cast<uintptr_t>(&device.device()), " ",
                                   Name(tensor.dtype()), " ", tensor.shape().ToString());
    const auto shared = packs->Get<ResidentCopy>(
        tensor, key, [&] { return Copy(tensor, device, stream).release(); });
    // A failure may be temporary, so it is not kept.
    if (shared->status.ok()) return shared->tensor.Reshaped(tensor.shape());
  }
  const auto copy = Copy(tensor, device, stream);
  if (!copy->status.ok()) return copy->status;
  return std::move(copy->tensor);
}

}  // namespace heddle
