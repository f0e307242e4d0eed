// Sparse tensors in coordinate form, as values that operators hand to each other.
#pragma once

#include <vector>

#include "core/kernel_context.h"

namespace heddle {

// The first `sparse_dim` axes are sparse, the others dense. Entry i lies at `at[i]`, its row-major
// position in the sparse axes, and is row i of `values` (number of entries, then the dense axes).
// Immutable once it is a variable's value. Positions may repeat.
struct CooTensor {
  int sparse_dim = 0;
  DType index_dtype = DType::kI64;
  Shape shape;
  std::vector<int64_t> at;
  Tensor values;

  int64_t count() const { return static_cast<int64_t>(at.size()); }
  // Elements of an entry.
  int64_t width() const { return shape.Product(sparse_dim, shape.rank()); }
  // Positions in the sparse axes.
  int64_t cells() const { return shape.Product(0, sparse_dim); }
  // Coordinates of position `p`, one for each sparse axis.
  std::vector<int64_t> Coordinates(int64_t p) const;
  // The same entries without their values.
  CooTensor Frame() const { return CooTensor{sparse_dim, index_dtype, shape, at, Tensor()}; }
  // Values for `entries` entries.
  Tensor NewValues(const KernelContext& ctx, DType dtype, int64_t entries) const;
};

// The operand, or an error when it is none.
Result<const CooTensor*> CooIn(const KernelContext& ctx, Key key);
// nullptr when the operand is something else.
const CooTensor* CooInOpt(const KernelContext& ctx, Key key);
void PutCoo(const KernelContext& ctx, Key key, CooTensor value);

}  // namespace heddle
