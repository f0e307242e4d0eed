// Products of matrices by NumPy's rules: batches broadcast, vectors are rows or columns.
#pragma once

#include "core/memory/watched_bytes.h"
#include "kernels/gemm/gemm.h"
#include "kernels/operands/operands.h"

namespace heddle {

struct MatMulShape {
  Shape out;
  BatchedGemm gemm;

  // to = alpha * a times b.
  template <typename T>
  void Run(const KernelContext& ctx, const T* a, const T* b, T* to, T alpha = T(1)) const {
    if (out.numel() == 0) return;
    if (gemm.one.k == 0)
      WatchedFill(to, out.numel(), T(0));
    else
      gemm.Run<T>(ctx, alpha, a, b, to);
  }
};

Result<MatMulShape> MatMulShapeOf(const Shape& a, const Shape& b, bool trans_a = false,
                                  bool trans_b = false);

}  // namespace heddle
