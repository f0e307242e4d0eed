// Large products, cut into calls of a library between which a run can be ended.
#pragma once

#include <vector>

#include "kernels/gemm/gemm.h"

namespace heddle {

// The cost of one call, which takes some tens of ms of one thread. Libraries pack both operands for
// each call: much smaller ones would take longer.
inline constexpr int64_t kCallCost = int64_t{1} << 30;
// In multiplications; an element of the result costs something, too.
inline int64_t CallCost(const GemmDims& d) { return d.m * d.n * (d.k + 512); }

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

}  // namespace heddle
