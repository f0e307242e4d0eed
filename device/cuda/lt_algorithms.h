// cuBLASLt: algorithms by its heuristics, and calls. (grid/lt_product.h)
#pragma once

#include <cublasLt.h>

#include "device/cuda/grid/lt_product.h"

namespace heddle {

class LtAlgorithms final : public card::LtChoices {
 public:
  // Algorithms may use `space` bytes of work space.
  static Result<std::unique_ptr<LtAlgorithms>> Make(bool tf32, size_t space);
  LtAlgorithms(cublasLtHandle_t lt, bool tf32, size_t space)
      : lt_(lt), tf32_(tf32), space_(space) {}
  ~LtAlgorithms() override;
  LtAlgorithms(const LtAlgorithms&) = delete;
  LtAlgorithms& operator=(const LtAlgorithms&) = delete;

  Status Run(const card::LtProduct& p, const card::LtChoice& choice, void* work, size_t space,
             cudaStream_t stream) const;

 private:
  std::optional<card::LtChoice> Choose(const card::LtProduct& p) override;

  cublasLtHandle_t lt_;
  bool tf32_;
  size_t space_;
};

cudaDataType_t CudaTypeOf(DType dtype);

}  // namespace heddle
