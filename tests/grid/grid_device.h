// A device that executes the CUDA device's kernels on the host, grid by grid: what runs on it shows
// that a card would be told the right things. It has the emulated device's memory, streams and
// events.
#pragma once

#include <atomic>
#include <map>
#include <mutex>

#include "device/cuda/grid/dnn.h"
#include "device/cuda/grid/kernel_table.h"
#include "tests/grid/lt_on_host.h"
#include "tests/support/forwarding_device.h"

namespace heddle::testing {

class GridStream final : public Stream {
 public:
  GridStream(std::unique_ptr<Stream> stream, int group, grid_on_host::LtChoices& lt,
             std::unique_ptr<grid_on_host::DnnStream> dnn)
      : stream_(std::move(stream)), group_(group), lt_(lt), dnn_(std::move(dnn)) {}
  Status CopyToDevice(void* to, const void* from, size_t bytes, uint64_t tag) override {
    return stream_->CopyToDevice(to, from, bytes, tag);
  }
  Status CopyToHost(void* to, const void* from, size_t bytes, uint64_t tag) override {
    return stream_->CopyToHost(to, from, bytes, tag);
  }
  Status CopyOnDevice(void* to, const void* from, size_t bytes, uint64_t tag) override {
    return stream_->CopyOnDevice(to, from, bytes, tag);
  }
  Status Fill(void* to, uint8_t byte, size_t bytes, uint64_t tag) override {
    return stream_->Fill(to, byte, bytes, tag);
  }
  Status Launch(KernelCall call, uint64_t tag) override {
    const auto* const kernel = grid_on_host::FindGridKernel(call.op->def->name());
    if (kernel == nullptr) return Unimplemented("no kernel of ", call.op->def->name());
    call.host_kernel = [run = kernel->run, group = group_, lt = &lt_,
                        dnn = dnn_.get()](KernelContext& ctx) {
      grid_on_host::Queue queue(group, lt);
      queue.set_dnn(dnn);
      return run(queue, ctx);
    };
    return stream_->Launch(std::move(call), tag);
  }
  Status Record(Event& event) override { return stream_->Record(event); }
  Status WaitFor(Event& event) override { return stream_->WaitFor(event); }
  Status Synchronize() override { return stream_->Synchronize(); }
  void WaitUntilDone() override { stream_->WaitUntilDone(); }
  std::optional<StreamError> TakeError() override { return stream_->TakeError(); }
  Status BeginCapture() override { return stream_->BeginCapture(); }
  Result<std::unique_ptr<Graph>> EndCapture() override { return stream_->EndCapture(); }
  Status Replay(Graph& graph) override { return stream_->Replay(graph); }

 private:
  std::unique_ptr<Stream> stream_;
  int group_;
  grid_on_host::LtChoices& lt_;
  std::unique_ptr<grid_on_host::DnnStream> dnn_;
};

class GridDevice final : public ForwardingDevice {
 public:
  // `has_lt`: cuBLASLt has algorithms. `dnn`: a library of convolutions; nullptr: none.
  explicit GridDevice(int group = 1, bool has_lt = true,
                      std::unique_ptr<grid_on_host::Dnn> dnn = nullptr)
      : group_(group), lt_(!has_lt), dnn_(std::move(dnn)) {}
  Result<std::unique_ptr<Stream>> NewStream(int priority) override {
    HEDDLE_ASSIGN_OR_RETURN(auto stream, ForwardingDevice::NewStream(priority));
    std::unique_ptr<grid_on_host::DnnStream> dnn;
    if (dnn_ != nullptr) {
      HEDDLE_ASSIGN_OR_RETURN(dnn, dnn_->NewStream(nullptr));
    }
    return std::unique_ptr<Stream>(
        std::make_unique<GridStream>(std::move(stream), group_, lt_, std::move(dnn)));
  }
  Result<std::unique_ptr<KernelState>> Prepare(const PrepareContext& call) const override {
    return grid_on_host::PrepareGridKernel(call, dnn_.get());
  }
  bool HasKernel(const CallView& call) const override {
    const bool covers = grid_on_host::CoversAndChooses(lt_, call);
    std::lock_guard lock(mutex_);
    ++(covers ? covered_ : refused_)[call.def().name()];
    return covers;
  }
  bool has_host_kernels() const override { return false; }

  const grid_on_host::LtOnHost& lt() const { return lt_; }
  // How often each operator was covered, or was not, when it was placed.
  std::map<std::string, int> covered() const {
    std::lock_guard lock(mutex_);
    return covered_;
  }
  std::map<std::string, int> refused() const {
    std::lock_guard lock(mutex_);
    return refused_;
  }

 private:
  int group_;
  mutable grid_on_host::LtOnHost lt_;
  std::unique_ptr<grid_on_host::Dnn> dnn_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, int> covered_, refused_;
};

}  // namespace heddle::testing
