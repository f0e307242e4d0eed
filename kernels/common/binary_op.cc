#include "kernels/common/binary_op.h"

#include "core/error.h"

namespace heddle {

Status CheckSameDType(const KernelContext& ctx, const Tensor& x, const Tensor& y) {
  if (x.dtype() == y.dtype()) return Status::Ok();
  const auto& slots = ctx.def().inputs();
  return InvalidArgument("inputs ", slots[0].name, " and ", slots[1].name,
                         " must have one dtype, got ", Name(x.dtype()), " and ", Name(y.dtype()));
}

Status BroadcastOut(ShapeContext& ctx, Key x, Key y, Key out, DType dtype) {
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape,
                          BroadcastShape(ctx.InShape(x), ctx.InShape(y), AxisOf(ctx)));
  ctx.SetOut(out, shape, dtype);
  ctx.ShareLoD(x, out);
  return Status::Ok();
}

}  // namespace heddle
