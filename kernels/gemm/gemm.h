// General matrix products on row-major memory, and batches of them with broadcast.
//
// Everything here is re-entrant; a BatchedGemm is immutable once planned.
#pragma once

#include <cstdint>

#include "core/kernel_context.h"

namespace heddle {

// One product C[m, n] = alpha * op(A)[m, k] * op(B)[k, n] + beta * C. Leading dimensions are those
// of the matrices as they are stored.
struct GemmDims {
  int64_t m = 0, n = 0, k = 0;
  bool trans_a = false, trans_b = false;
  int64_t lda = 0, ldb = 0, ldc = 0;

  // Matrices without gaps.
  static GemmDims Dense(int64_t m, int64_t n, int64_t k, bool trans_a = false,
                        bool trans_b = false) {
    return {m, n, k, trans_a, trans_b, trans_a ? m : k, trans_b ? k : n, n};
  }
  int64_t work() const { return m * n * k; }
};

// Whether Gemm leaves such a product of floating-point numbers to a library.
bool IsLarge(const GemmDims& d);

// On the calling thread. T: float, double, int32_t, int64_t, complex<float>, complex<double>.
// With beta == 0, C is only written.
template <typename T>
void Gemm(const GemmDims& d, T alpha, const T* a, const T* b, T beta, T* c);

// Over the threads of the run.
template <typename T>
void ParallelGemm(const KernelContext& ctx, const GemmDims& d, T alpha, const T* a, const T* b,
                  T beta, T* c);

// Products of matrices in up to kMaxRank - 2 batch dimensions. An operand that lacks a dimension
// (or has 1 there) is broadcast; where C lacks one, the products are summed.
struct BatchedGemm {
  GemmDims one;
  int64_t batch = 1;
  Shape dims;                          // of the batch, adjacent dimensions merged
  Shape a_stride, b_stride, c_stride;  // elements per step of each batch dimension; 0: broadcast
  bool sums = false;                   // several products are added up in one matrix of C

  int64_t work() const { return batch * one.work(); }
  // Offsets of the matrices of product `at` of the batch, in elements.
  struct Offsets {
    int64_t a = 0, b = 0, c = 0;
  };
  Offsets OffsetsOf(int64_t at) const;
  // alpha * products, added to what C holds when `accumulate`.
  template <typename T>
  void Run(const KernelContext& ctx, T alpha, const T* a, const T* b, T* c,
           bool accumulate = false) const;
};

// Batch dimensions are the leading dimensions of the operands' shapes, without the matrices'.
BatchedGemm PlanBatchedGemm(const Shape& a_batch, const Shape& b_batch, const Shape& c_batch,
                            const GemmDims& dense);

}  // namespace heddle
