// StepLauncher: puts the work of a device plan's step on its stream: a copy or a kernel, with its
// memory.
//
// Ownership: keeps memory that streams read, and kernel states, until the streams are finished, and
// so must outlive DeviceSession::Drain. Threads: the dispatching thread; each of several such
// threads has its own launcher.
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
  // Whether the streams know more about the latest failure.
  bool failed_on_device() const { return failed_on_device_; }
  void set_failed_on_device() { failed_on_device_ = true; }
  // Exchanges the list of memory that streams read with `held`.
  void SwapHeld(std::vector<Tensor>* held) { held_.swap(*held); }
  // Releases the memory that streams read; to be called when they are finished.
  void Drop();
  // Looks for NaN and infinity in what the step writes, in copies on the host.
  Status CheckValues(size_t i);

 private:
  // Takes device memory for a slot that the step's work writes.
  Status Provide(size_t i, uint32_t slot, DType dtype, const Shape& shape);
  // The same for a copy of `t`, with its sequence offsets; reuses the slot's own memory if it fits.
  Status ProvideCopy(size_t i, uint32_t slot, const Tensor& t);
  void Use(uint32_t slot, Stream& stream);
  Status CopyIn(size_t i);
  // The tensor in pinned memory, from which copies go directly, if there is some. `changes`: the
  // host may write to the tensor before the copy is finished.
  Tensor Pinned(const DeviceStep& step, const Tensor& t, bool changes);
  Status CopyOut(size_t i);
  Status CopyPeer(size_t i);
  Status LaunchShaped(size_t i);
  // Copies the contents of the inputs to the host.
  Status FetchOperands(const DeviceStep& step, std::vector<Value>* values);
  // Infers the shapes now. Sequence offsets are known only when the kernel is finished, so the host
  // waits.
  Status LaunchDynamic(size_t i);
  Status Launch(size_t i, KernelFn fn, const KernelState* state,
                std::function<void(size_t, const LoD&)> offsets);

  DeviceSession& session_;
  std::vector<Tensor> held_;  // memory of the host or of other devices that streams read
  std::vector<std::shared_ptr<const KernelState>> states_;
  bool failed_on_device_ = false;
};

}  // namespace heddle
