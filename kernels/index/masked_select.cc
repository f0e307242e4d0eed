// masked_select: the elements for which a mask is true.
#include "core/interrupts.h"
#include "core/shapes.h"
#include "kernels/index/nd_rows.h"
#include "kernels/strided/index_expand.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

// Numbers of the elements where `mask` (broadcast to `shape`) is true.
Result<Tensor> Places(const KernelContext& ctx, const Tensor& mask, const Shape& shape) {
  if (mask.dtype() != DType::kBool)
    return InvalidArgument("'Mask' must be bool, not ", Name(mask.dtype()));
  Tensor full = mask;
  if (!(mask.shape() == shape)) {
    full = ctx.Scratch(DType::kBool, shape);
    HEDDLE_RETURN_IF_ERROR(RunRepeat(ctx, mask, full));
  }
  const bool* set = full.data<bool>();
  const int64_t n = full.numel();
  int64_t count = 0;
  for (const auto part : Stretches(n))
    for (int64_t i = part.begin; i < part.end; ++i) count += set[i] ? 1 : 0;
  Tensor places = ctx.Scratch(DType::kI64, Shape{count});
  int64_t* at = places.mutable_data<int64_t>();
  for (const auto part : Stretches(n))
    for (int64_t i = part.begin; i < part.end; ++i)
      if (set[i]) *at++ = i;
  return places;
}

Status MaskedSelect(KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  const Tensor& mask = ctx.In("Mask");
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, BroadcastShape(x.shape(), mask.shape(), -1));
  Tensor full = x;
  if (!(x.shape() == shape)) {
    full = ctx.Scratch(x.dtype(), shape);
    HEDDLE_RETURN_IF_ERROR(RunRepeat(ctx, x, full));
  }
  HEDDLE_ASSIGN_OR_RETURN(const Tensor places, Places(ctx, mask, shape));
  Tensor& out = ctx.Alloc("Y", x.dtype(), places.shape());
  GatherRows(ctx, full.raw(), places, GoodRows(full.numel()), 1,
             static_cast<int64_t>(SizeOf(x.dtype())), out.mutable_raw());
  return Status::Ok();
}

Status MaskedSelectGrad(KernelContext& ctx) {
  const Tensor& grad = ctx.In("Y@GRAD");
  const Tensor& mask = ctx.In("Mask");
  Tensor& out = ctx.Out("X@GRAD");
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, BroadcastShape(out.shape(), mask.shape(), -1));
  HEDDLE_ASSIGN_OR_RETURN(const Tensor places, Places(ctx, mask, shape));
  if (grad.numel() != places.numel() || grad.dtype() != out.dtype())
    return InvalidArgument("'Y@GRAD' (", Name(grad.dtype()), " ", grad.shape().ToString(),
                           ") does not fit 'Mask' with ", places.numel(), " true values");
  const auto size = static_cast<int64_t>(SizeOf(out.dtype()));
  const bool same = out.shape() == shape;
  Tensor full = same ? out : ctx.Scratch(out.dtype(), shape);
  ZeroBytes(ctx, full.mutable_raw(), full.bytes());
  ScatterRows(ctx, grad.raw(), places, GoodRows(full.numel()), 1, size, full.mutable_raw());
  return same ? Status::Ok() : RunRepeatSum(ctx, full, out);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(masked_select) {
  op.Doc("The elements of X where Mask is true, as a vector.")
      .Input("X")
      .Input("Mask")
      .Output("Y")
      .AnyKernel(MaskedSelect);
}

HEDDLE_OP(masked_select_grad) {
  op.Input("Y@GRAD")
      .Input("X", kNoBuffer)
      .Input("Mask")
      .Output("X@GRAD")
      .InferShape(GradLikeInputs)
      .AnyKernel(MaskedSelectGrad);
}
