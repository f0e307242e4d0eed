// Shape functions and kernels of operators that only change the shape of a tensor.
#pragma once

#include "core/shapes.h"

namespace heddle {

// Sets "XShape" ([0] + X's dimensions; only its shape is ever read) when the program asks for it.
void SetXShape(ShapeContext& ctx);
// "X@GRAD" gets the shape that the forward pass kept in "XShape".
Status GradFromXShape(ShapeContext& ctx);
// Sets "Out" to `out`, with X's sequence offsets when the number of rows stays, and "XShape".
Status SetViewOut(ShapeContext& ctx, const Shape& out);

}  // namespace heddle
