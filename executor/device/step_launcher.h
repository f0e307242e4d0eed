// StepLauncher: what a step of a device plan puts on its stream: copies and kernels, with their
// memory.
//
// Ownership: keeps memory that streams read, and kernel states, until the streams are done: it
// outlives DeviceSession::Drain. Threads: that which dispatches; of several, each has a launcher.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "executor/device/device_session.h"

namespace heddle {

class StepLauncher {
 public:
  explicit StepLauncher(DeviceSession& session) : session_(session) {}

  Status Put(size_t i);
  // The newest failure is one that streams know more about.
  bool failed_on_device() const { return failed_on_device_; }
  void set_failed_on_device() { failed_on_device_ = true; }
  // Takes `held` for the memory that streams read, and gives the present one.
  void SwapHeld(std::vector<Tensor>* held) { held_.swap(*held); }
  // After the streams are done: lets go of the memory that they read.
  void Drop();
  // Looks for NaN and infinity in copies of what the step writes.
  Status CheckValues(size_t i);

 private:
  // Memory of the device for a slot that work of the step writes.
  Status Provide(size_t i, uint32_t slot, DType dtype, const Shape& shape);
  // The same for a copy of `t`, in the slot's own memory where that fits, with its offsets.
  Status ProvideCopy(size_t i, uint32_t slot, const Tensor& t);
  void Use(uint32_t slot, Stream& stream);
  Status CopyIn(size_t i);
  // In memory from which copies need no detour, where there is some. `changes`: the host may write
  // to the tensor before the copy is done.
  Tensor Pinned(const DeviceStep& step, const Tensor& t, bool changes);
  Status CopyOut(size_t i);
  Status CopyPeer(size_t i);
  Status LaunchShaped(size_t i);
  // The inputs' contents, on the host.
  Status FetchOperands(const DeviceStep& step, std::vector<Value>* values);
  // Shapes are inferred now. Sequence offsets are known when the kernel is done, so the host waits.
  Status LaunchDynamic(size_t i);
  Status Launch(size_t i, KernelFn fn, const KernelState* state,
                std::function<void(size_t, const LoD&)> offsets);

  DeviceSession& session_;
  std::vector<Tensor> held_;  // memory of the host, or of peers, that streams read
  std::vector<std::shared_ptr<const KernelState>> states_;
  bool failed_on_device_ = false;
};

}  // namespace heddle
