// as_real and as_complex: complex numbers as pairs and back.
#include "core/shapes.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

Status AsRealShape(ShapeContext& ctx) {
  Shape out = ctx.InShape("X");
  const DType dtype = ctx.InDType("X");
  if (dtype != DType::kC64 && dtype != DType::kC128)
    return InvalidArgument("'X' must be complex, not ", Name(dtype));
  if (!out.known_rank()) return ctx.Defer();
  if (out.rank() == Shape::kMaxRank) return InvalidArgument("'X' has too many dimensions");
  out.push_back(2);
  ctx.SetOut("Out", out, dtype == DType::kC64 ? DType::kF32 : DType::kF64);
  return Status::Ok();
}

Status AsComplexShape(ShapeContext& ctx) {
  Shape out = ctx.InShape("X");
  const DType dtype = ctx.InDType("X");
  if (dtype != DType::kF32 && dtype != DType::kF64)
    return InvalidArgument("'X' must be float32 or float64, not ", Name(dtype));
  if (!out.known_rank()) return ctx.Defer();
  if (out.rank() == 0 || (out.dim(-1) != 2 && out.dim(-1) >= 0))
    return InvalidArgument("the last dimension of 'X' must be 2, not ", out.ToString());
  out.erase(out.rank() - 1);
  ctx.SetOut("Out", out, dtype == DType::kF32 ? DType::kC64 : DType::kC128);
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(as_real) {
  op.Doc("X with a last dimension of real and imaginary parts.")
      .Input("X")
      .Output("Out")
      .InferShape(AsRealShape)
      .AnyKernel(CopyFirst);
}
HEDDLE_OP(as_complex) {
  op.Doc("X, whose last dimension holds real and imaginary parts, as complex numbers.")
      .Input("X")
      .Output("Out")
      .InferShape(AsComplexShape)
      .AnyKernel(CopyFirst);
}
