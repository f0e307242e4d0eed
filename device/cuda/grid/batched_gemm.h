// Products of batches of matrices that broadcast, in as few BLAS calls as possible.
#pragma once

#include <optional>

#include "device/cuda/grid/queue.h"
#include "device/cuda/grid/strides.h"

namespace heddle::HEDDLE_GRID {

// Matrices of `rows` x `cols` elements in memory, rows `ld` elements apart; `steps` along the
// dimensions of the batch. `trans`: used transposed.
struct MatrixBatch {
  const void* data = nullptr;
  int64_t rows = 0, cols = 0, ld = 0;
  bool trans = false;
  Steps steps;
};

// c = alpha op(a) op(b) + beta c over `batch`. Along dimensions in which c has step 0, products are
// added up. c is [m, n] with rows `ldc` apart.
struct BatchedProduct {
  Shape batch;
  MatrixBatch a, b;
  void* c = nullptr;
  int64_t ldc = 0;
  Steps c_steps;
  float alpha = 1, beta = 0;
  DType type = DType::kF32, c_type = DType::kF32;  // of a and b; of c: the same, or float32

  int64_t m() const { return a.trans ? a.cols : a.rows; }
  int64_t k() const { return a.trans ? a.rows : a.cols; }
  int64_t n() const { return b.trans ? b.rows : b.cols; }
  Status Run(Queue& queue) const;
  // As one call; nothing where it takes several, or none.
  std::optional<RowMajorGemm> AsOne() const;

 private:
  Status RunInFloat(Queue& queue) const;
};

// Steps of matrices of `size` elements in a batch of shape `own` along `batch`.
Steps BatchSteps(const Shape& own, const Shape& batch, int64_t size);

}  // namespace heddle::HEDDLE_GRID
