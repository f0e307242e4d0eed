#include "kernels/elementwise/binary_op.h"

#include "core/error.h"
#include "kernels/base/check.h"

namespace heddle {

Status CheckSameDType(const KernelContext& ctx, const Tensor& x, const Tensor& y) {
  if (x.dtype() == y.dtype()) return Status::Ok();
  const auto& slots = ctx.def().inputs();
  return InvalidArgument("inputs ", slots[0].name, " and ", slots[1].name,
                         " must have one dtype, got ", Name(x.dtype()), " and ", Name(y.dtype()));
}

DType PromotedDType(DType x, DType y) {
  if (x == y || (!IsComplex(x) && !IsComplex(y))) return x;
  const auto wide = [](DType t) { return t == DType::kF64 || t == DType::kC128; };
  return wide(x) || wide(y) ? DType::kC128 : DType::kC64;
}

Status RunMixed(const KernelContext& ctx, const Tensor& x, const Tensor& y) {
  if (!IsComplex(x.dtype()) && !IsComplex(y.dtype())) return CheckSameDType(ctx, x, y);
  return RunConverted(ctx, PromotedDType(x.dtype(), y.dtype()));
}

Status BroadcastOut(ShapeContext& ctx, Key x, Key y, Key out, DType dtype) {
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape,
                          BroadcastShape(ctx.InShape(x), ctx.InShape(y), AxisOf(ctx)));
  ctx.SetOut(out, shape, dtype);
  ctx.ShareLoD(x, out);
  return Status::Ok();
}

}  // namespace heddle
