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

HEDDLE_EXAMPLES(as_real, R"(
example complex128 4x4
in X complex128 [4, 4] 0.6+1.5j -1.5+1.8j 1.8+1.7j -0.1-0.3j 1.5-1.9j -1.2+1.9j -1.8-0.6j -0.4+0.8j
  -1.1-0.6j 1.4-1.9j -1.2+1.4j 1+0.6j -0.4+1.1j -1.3+0.2j 1+1.5j -1.7+1.6j
out Out float64 [4, 4, 2] 0.6 1.5 -1.5 1.8 1.8 1.7 -0.1 -0.3 1.5 -1.9 -1.2 1.9 -1.8 -0.6 -0.4 0.8
  -1.1 -0.6 1.4 -1.9 -1.2 1.4 1 0.6 -0.4 1.1 -1.3 0.2 1 1.5 -1.7 1.6
)")

HEDDLE_EXAMPLES(as_complex, R"(
example float64 4x4x2
in X float64 [4, 4, 2] 0.03125*32
out Out complex128 [4, 4] 0.03125+0.03125j*16

example float32 4x4x2
in X float32 [4, 4, 2] 0.03125*32
out Out complex64 [4, 4] 0.03125+0.03125j*16
)")
