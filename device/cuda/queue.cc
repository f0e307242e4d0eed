// The card's side of grid/queue.h.
#include "device/cuda/grid/queue.h"

#include "device/cuda/cuda_device.h"
#include "device/cuda/lt_algorithms.h"

namespace heddle::HEDDLE_GRID {

Status Queue::Launched() { return CudaStatus(cudaGetLastError(), "the launch of a kernel"); }

Status Queue::Gemm(const ColumnMajorGemm& g) {
  const auto op = [](bool trans) { return trans ? CUBLAS_OP_T : CUBLAS_OP_N; };
  const auto m = static_cast<int>(g.m), n = static_cast<int>(g.n), k = static_cast<int>(g.k),
             lda = static_cast<int>(g.lda), ldb = static_cast<int>(g.ldb),
             ldc = static_cast<int>(g.ldc), batch = static_cast<int>(g.batch);
  const cudaDataType_t type = CudaTypeOf(g.type);
  // The handle's mode says whether products of float32 may be TF32.
  const auto result =
      g.type == DType::kF32
          ? cublasSgemmStridedBatched(blas_, op(g.trans_a), op(g.trans_b), m, n, k, &g.alpha,
                                      static_cast<const float*>(g.a), lda, g.a_step,
                                      static_cast<const float*>(g.b), ldb, g.b_step, &g.beta,
                                      static_cast<float*>(g.c), ldc, g.c_step, batch)
          : cublasGemmStridedBatchedEx(blas_, op(g.trans_a), op(g.trans_b), m, n, k, &g.alpha, g.a,
                                       type, lda, g.a_step, g.b, type, ldb, g.b_step, &g.beta, g.c,
                                       CudaTypeOf(g.c_type), ldc, g.c_step, batch,
                                       CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
  if (result == CUBLAS_STATUS_SUCCESS) return Status::Ok();
  return Internal("cuBLAS refuses the product: ", cublasGetStatusString(result));
}

Result<bool> Queue::Multiply(const LtProduct& p) {
  const LtChoice* const choice = lt_ != nullptr ? lt_->Get(p) : nullptr;
  if (choice == nullptr || choice->workspace > space_) return false;
  HEDDLE_RETURN_IF_ERROR(static_cast<LtAlgorithms*>(lt_)->Run(p, *choice, work_, space_, stream_));
  return true;
}

Status Queue::Zero(void* to, size_t bytes) {
  if (bytes == 0) return Status::Ok();
  return CudaStatus(cudaMemsetAsync(to, 0, bytes, stream_), "a fill");
}

Status Queue::Copy(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return Status::Ok();
  return CudaStatus(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_), "a copy");
}

Result<void*> Queue::Allocate(size_t bytes) {
  void* memory = nullptr;
  HEDDLE_RETURN_IF_ERROR(CudaStatus(cudaMallocAsync(&memory, bytes, stream_), "work space"));
  return memory;
}
void Queue::Free(void* memory) { (void)cudaFreeAsync(memory, stream_); }

}  // namespace heddle::HEDDLE_GRID
