// Shape functions that many operators share, and helpers for others.
#pragma once

#include "core/shape_context.h"

namespace heddle {

// Gives the first output the first input's shape, dtype and LoD.
Status SameShape(ShapeContext& ctx);
// For gradients: each output "V@GRAD" has the shape and dtype of input "V" at the same position.
Status GradLikeInputs(ShapeContext& ctx);
// NumPy broadcast of a and b with Paddle's `axis` (-1: align the ends; k: b's dims start at k, and
// its trailing ones are dropped). Unknown dimensions give unknown ones. An error if they do not
// fit.
Result<Shape> BroadcastShape(const Shape& a, const Shape& b, int64_t axis);
// The axis in [-rank, rank) made non-negative; an error if it is out of range. Rank 0 counts as
// rank 1.
Result<int> NormalAxis(int64_t axis, int rank);
// The elements of a small integer tensor (int32 or int64).
Ints ToInts(const Tensor& t);
// The dtype for the value of an attribute like `dtype` (Paddle's VarType numbers: 5 = float32, 3 =
// int64, …).
DType DTypeFromProto(int64_t proto_type);
int64_t DTypeToProto(DType dtype);

}  // namespace heddle
