// Small matrix products and zeroed results of operators on packed matrices of different sizes.
#pragma once

#include "core/interrupts.h"
#include "kernels/base/shape_checks.h"
#include "kernels/sequence/sequence.h"

namespace heddle {

// c (m x n) += op(a) op(b), row-major, with strides for rows and columns of a and b.
struct ProductStrides {
  int64_t row, col;
};

inline void AddProduct(int64_t m, int64_t n, int64_t k, const float* a, ProductStrides sa,
                       const float* b, ProductStrides sb, float* c) {
  for (const int64_t i : Watched(m))
    for (int64_t l = 0; l < k; ++l) {
      const float v = a[i * sa.row + l * sa.col];
      for (int64_t j = 0; j < n; ++j) c[i * n + j] += v * b[l * sb.row + j * sb.col];
    }
}

inline Tensor ZeroedLike(const KernelContext& ctx, Key slot, const Tensor& like) {
  Tensor t = ctx.HasOut(slot) ? ctx.Alloc(slot, like.dtype(), like.shape())
                              : ctx.Scratch(like.dtype(), like.shape());
  ZeroAll(t);
  if (ctx.HasOut(slot) && like.has_lod()) ctx.OutOpt(slot)->set_lod(like.lod());
  return t;
}

}  // namespace heddle
