#include "device/measure_kernel.h"

#include <algorithm>
#include <memory>

#include "core/error.h"

namespace heddle {
namespace {

// Memory of a device as long as the object lives.
class DeviceMemory {
 public:
  explicit DeviceMemory(Device& device) : device_(device) {}
  ~DeviceMemory() {
    for (void* memory : all_) device_.Free(memory);
  }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  Result<void*> Take(size_t bytes) {
    HEDDLE_ASSIGN_OR_RETURN(void* memory, device_.Allocate(bytes));
    all_.push_back(memory);
    return memory;
  }

 private:
  Device& device_;
  std::vector<void*> all_;
};

Result<double> Measure(Device& device, KernelCall call, const std::vector<bool>& on_device) {
  constexpr int kWarmUps = 2, kRuns = 7;
  DeviceMemory memory(device);
  HEDDLE_ASSIGN_OR_RETURN(const auto stream, device.NewStream(0));
  for (size_t i = 0; i < call.operands.size(); ++i) {
    if (!on_device[i]) continue;
    Tensor& t = call.operands[i].tensor();
    HEDDLE_ASSIGN_OR_RETURN(void* at, memory.Take(t.bytes()));
    HEDDLE_RETURN_IF_ERROR(stream->Fill(at, 0, t.bytes(), 0));
    t.Bind(at);
  }
  HEDDLE_ASSIGN_OR_RETURN(const auto begin, device.NewEvent(true));
  HEDDLE_ASSIGN_OR_RETURN(const auto end, device.NewEvent(true));
  std::vector<int64_t> ns;
  for (int k = 0; k < kWarmUps + kRuns; ++k) {
    HEDDLE_RETURN_IF_ERROR(stream->Record(*begin));
    HEDDLE_RETURN_IF_ERROR(stream->Launch(call, 0));
    HEDDLE_RETURN_IF_ERROR(stream->Record(*end));
    const Status status = stream->Synchronize();
    if (auto error = stream->TakeError()) return error->status;
    HEDDLE_RETURN_IF_ERROR(status);
    HEDDLE_ASSIGN_OR_RETURN(const int64_t took, end->NanosecondsSince(*begin));
    if (k >= kWarmUps) ns.push_back(took);
  }
  std::nth_element(ns.begin(), ns.begin() + kRuns / 2, ns.end());
  return static_cast<double>(ns[kRuns / 2]);
}

}  // namespace

double MeasureKernel(Device& device, const KernelCall& call, const std::vector<Value>& operands,
                     const std::vector<bool>& on_device) {
  KernelCall with = call;
  with.operands = operands;
  const auto ns = Measure(device, std::move(with), on_device);
  return ns.ok() ? *ns : 0;
}

}  // namespace heddle
