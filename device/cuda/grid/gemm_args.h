// A matrix product in row-major form, for kernels, and in column-major form, for BLAS.
#pragma once

#include <cstdint>

#include "device/cuda/grid/grid_body.h"
#include "heddle/dtype.h"

namespace heddle::HEDDLE_GRID {

// c[i] = alpha op(a[i]) op(b[i]) + beta c[i] for `batch` products; op(a) is m x k, op(b) k x n.
// Sums are float32, and rounded once where c has 16-bit numbers. Rows are `lda`, `ldb`, `ldc`
// elements apart, products `a_step`, `b_step`, `c_step`; 0 uses one matrix for all.
struct RowMajorGemm {
  bool trans_a = false, trans_b = false;
  int64_t m = 0, n = 0, k = 0;
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  int64_t lda = 0, ldb = 0, ldc = 0;
  int64_t batch = 1, a_step = 0, b_step = 0, c_step = 0;
  float alpha = 1, beta = 0;
  DType type = DType::kF32, c_type = DType::kF32;  // of a and b; of c: the same, or float32
};

// The same with columns: as cublasGemmStridedBatchedEx names its arguments.
struct ColumnMajorGemm {
  bool trans_a = false, trans_b = false;
  int64_t m = 0, n = 0, k = 0;
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  int64_t lda = 0, ldb = 0, ldc = 0;
  int64_t batch = 1, a_step = 0, b_step = 0, c_step = 0;
  float alpha = 1, beta = 0;
  DType type = DType::kF32, c_type = DType::kF32;  // of a and b; of c: the same, or float32
};

// A row-major matrix is its column-major transpose: c' = b' a'.
inline ColumnMajorGemm ByColumns(const RowMajorGemm& g) {
  return {g.trans_b, g.trans_a, g.n,    g.m,    g.k,     g.b,      g.a,
          g.c,       g.ldb,     g.lda,  g.ldc,  g.batch, g.b_step, g.a_step,
          g.c_step,  g.alpha,   g.beta, g.type, g.c_type};
}

}  // namespace heddle::HEDDLE_GRID
