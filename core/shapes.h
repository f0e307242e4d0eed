// Shape functions that many operators share, and small helpers to write new ones.
#pragma once

#include "core/op_context.h"

namespace heddle {

// Out has X's shape, dtype and LoD: first input slot to first output slot.
Status SameShape(ShapeContext& ctx);
// For gradients: every output "V@GRAD" has the shape and dtype of input "V" of the same position.
Status GradLikeInputs(ShapeContext& ctx);
// NumPy broadcast of a and b with Paddle's `axis` (-1: align the ends; k: b's dims start at k,
// trailing ones of b dropped). Unknown dimensions give unknown ones. Error when they do not fit.
Result<Shape> BroadcastShape(const Shape& a, const Shape& b, int64_t axis);
// `axis` in [-rank, rank) made non-negative; error otherwise. Rank 0 counts as rank 1.
Result<int> NormalAxis(int64_t axis, int rank);
// Elements of a small integer tensor (int32 or int64).
Ints ToInts(const Tensor& t);
// dtype of a `dtype`-like attribute (Paddle's VarType numbers: 5 = float32, 3 = int64, …).
DType DTypeFromProto(int64_t proto_type);
int64_t DTypeToProto(DType dtype);

}  // namespace heddle
