// Large products, cut into calls of a library between which a run can be ended.
#pragma once

#include <vector>

#include "kernels/gemm/gemm.h"

namespace heddle {

// The cost of one call, which takes some 20 ms of one thread. Libraries pack both operands for each
// call: much smaller ones would take longer.
inline constexpr int64_t kCallCost = int64_t{1} << 29;
// In multiplications; an element of the result costs something, and so does one that is read.
inline int64_t CallCost(const GemmDims& d) {
  constexpr int64_t kToRead = 8;
  return d.m * d.n * (d.k + 512) + kToRead * d.k * (d.m + d.n);
}

// A part of a product: some batches, rows and columns of the result.
struct GemmCall {
  BatchedGemm g;
  int64_t a_at = 0, b_at = 0, c_at = 0;  // its operands begin so many elements in
  int64_t row = 0, column = 0;
};

// All of `g`, in calls of about kCallCost; one call where that is enough. `columns`: the result may
// be cut into columns, too.
std::vector<GemmCall> CallsOf(const BatchedGemm& g, bool columns);

// Rows and columns of a block of one product that makes about one call.
struct GemmBlock {
  int64_t rows, columns;
};
GemmBlock BlockOf(const GemmDims& d, bool columns);

// Terms of a call's sums, in multiples of `step`: d.k unless a call of all would take very long.
int64_t DepthOf(const GemmDims& d, int64_t step);

}  // namespace heddle
