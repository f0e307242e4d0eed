// The CUDA device: streams and events of the CUDA runtime, kernels of grid/, products by cuBLAS and
// cuBLASLt.
//
// Not yet run on a card: see docs/gpu.md. CUDA's API is called in this folder alone. Built with
// HEDDLE_CUDA=ON.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include <atomic>

#include "device/cuda/grid/dnn.h"
#include "device/device.h"

namespace heddle {

class LtAlgorithms;
namespace card {
class LtChoices;
}

Status CudaStatus(cudaError_t error, const char* what);

class CudaDevice final : public Device {
 public:
  // On the first card.
  static Result<std::shared_ptr<Device>> Open(const CudaOptions& options);
  explicit CudaDevice(const CudaOptions& options);
  ~CudaDevice() override;
  const std::string& name() const override { return name_; }
  size_t memory_bytes() const override { return memory_bytes_; }
  Result<void*> Allocate(size_t bytes) override;
  void Free(void* memory) override;
  Result<void*> AllocateHost(size_t bytes) override;
  void FreeHost(void* memory) override;
  Result<std::unique_ptr<Stream>> NewStream(int priority) override;
  Result<std::unique_ptr<Event>> NewEvent(bool timed) override;
  bool HasKernel(const CallView& call) const override;
  Result<std::unique_ptr<KernelState>> Prepare(const PrepareContext& call) const override;
  bool lost() const override { return lost_; }

  // A failure that ends the process's work with the card marks the device lost.
  Status Note(cudaError_t error, const char* what);
  uint64_t NextError() { return ++errors_; }
  card::LtChoices* lt() const;

 private:
  const std::string name_ = "cuda";
  const CudaOptions options_;
  size_t memory_bytes_ = 0;
  std::atomic<bool> lost_{false};
  std::atomic<uint64_t> errors_{0};
  std::unique_ptr<LtAlgorithms> lt_;
  std::unique_ptr<card::Dnn> dnn_;  // null: cuDNN is not there
};

}  // namespace heddle
