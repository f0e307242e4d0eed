// A device that is an emulated one in all that a derived class does not say otherwise.
#pragma once

#include <memory>
#include <string>

#include "device/device.h"

namespace heddle::testing {

class ForwardingDevice : public Device {
 public:
  const std::string& name() const override { return device_->name(); }
  size_t memory_bytes() const override { return device_->memory_bytes(); }
  Result<void*> Allocate(size_t bytes) override { return device_->Allocate(bytes); }
  void Free(void* memory) override { device_->Free(memory); }
  Result<void*> AllocateHost(size_t bytes) override { return device_->AllocateHost(bytes); }
  void FreeHost(void* memory) override { device_->FreeHost(memory); }
  Result<std::unique_ptr<Stream>> NewStream(int priority) override {
    return device_->NewStream(priority);
  }
  Result<std::unique_ptr<Event>> NewEvent(bool timed) override { return device_->NewEvent(timed); }
  bool HasKernel(const CallView& call) const override { return device_->HasKernel(call); }
  bool has_host_kernels() const override { return device_->has_host_kernels(); }
  bool lost() const override { return device_->lost(); }

 private:
  const std::shared_ptr<Device> device_ = NewEmulatedDevice();
};

}  // namespace heddle::testing
