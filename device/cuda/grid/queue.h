// The target of launches: a stream of the card with its cuBLAS handle, or, in the build for the
// host, the calling thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "core/error.h"
#include "device/cuda/grid/gemm_args.h"
#include "device/cuda/grid/grid_body.h"
#include "heddle/status.h"

#ifndef HEDDLE_GRID_ON_HOST
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#endif

namespace heddle::HEDDLE_GRID {

struct LtProduct;
class LtChoices;
class DnnStream;

#ifdef HEDDLE_GRID_ON_HOST

class Queue {
 public:
  // Groups of `group` threads, a power of two. Without `lt` there is no cuBLASLt.
  explicit Queue(int group = 1, LtChoices* lt = nullptr) : group_(group), lt_(lt) {}

  Status Launched() { return Status::Ok(); }
  void RunGroup(const std::function<void(int rank, int size, void* slots, void* barrier)>& run);
  Status Gemm(const ColumnMajorGemm& g);
  Result<bool> Multiply(const LtProduct& p);
  Status Zero(void* to, size_t bytes);
  Status Copy(void* to, const void* from, size_t bytes);
  Result<void*> Allocate(size_t bytes);
  void Free(void* memory);
  // Convolutions of a library; nullptr: there is none.
  DnnStream* dnn() const { return dnn_; }
  void set_dnn(DnnStream* dnn) { dnn_ = dnn; }

 private:
  DnnStream* dnn_ = nullptr;
  int group_;
  LtChoices* lt_;
};

#else

// Not thread-safe; belongs to one stream.
class Queue {
 public:
  // cuBLASLt works in `space` bytes of `work`.
  Queue(cudaStream_t stream, cublasHandle_t blas, LtChoices* lt, void* work, size_t space)
      : stream_(stream), blas_(blas), lt_(lt), work_(work), space_(space) {}

  cudaStream_t stream() const { return stream_; }
  // The status of the last launch.
  Status Launched();
  Status Gemm(const ColumnMajorGemm& g);
  // By cuBLASLt; false: it has no algorithm, and nothing was done.
  Result<bool> Multiply(const LtProduct& p);
  Status Zero(void* to, size_t bytes);
  Status Copy(void* to, const void* from, size_t bytes);
  // In stream order: freed memory serves later work of the stream.
  Result<void*> Allocate(size_t bytes);
  void Free(void* memory);
  // Convolutions of a library; nullptr: there is none.
  DnnStream* dnn() const { return dnn_; }
  void set_dnn(DnnStream* dnn) { dnn_ = dnn; }

 private:
  DnnStream* dnn_ = nullptr;
  cudaStream_t stream_;
  cublasHandle_t blas_;
  LtChoices* lt_;
  void* work_;
  size_t space_;
};

#endif

// Work space of one call of a kernel.
class Scratch {
 public:
  explicit Scratch(Queue& queue) : queue_(queue) {}
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    if (memory_ != nullptr) queue_.Free(memory_);
  }
  // Call it at most once.
  Status Take(int64_t floats) {
    HEDDLE_ASSIGN_OR_RETURN(
        memory_, queue_.Allocate(sizeof(float) * static_cast<size_t>(floats < 1 ? 1 : floats)));
    return Status::Ok();
  }
  float* data() const { return static_cast<float*>(memory_); }

 private:
  Queue& queue_;
  void* memory_ = nullptr;
};

}  // namespace heddle::HEDDLE_GRID
