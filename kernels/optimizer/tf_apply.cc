#include "kernels/optimizer/tf_apply.h"

#include "core/interrupts.h"
#include "kernels/base/convert.h"

namespace heddle::tf_apply {

void Declare(OpDef& op, std::span<const TfApplySlot> slots, bool sparse) {
  for (const TfApplySlot& s : slots) {
    op.Input(s.key.name);
    if (s.role == kGrad && sparse) op.Input("indices");
  }
  for (const TfApplySlot& s : slots) {
    if (s.role != kState) continue;
    op.Output(s.out.name).Inplace(s.key.name, s.out.name);
  }
  op.KernelKey(slots.front().key.name);
}

Status Infer(ShapeContext& ctx, std::span<const TfApplySlot> slots, bool sparse) {
  const Key var = slots.front().key;
  const Shape& shape = ctx.InShape(var);
  for (const TfApplySlot& s : slots) {
    const Key key = s.key;
    const Shape& own = ctx.InShape(key);
    if (ctx.InDType(key) != ctx.InDType(var))
      return InvalidArgument(s.key.name, " is ", Name(ctx.InDType(key)), ", ", var.name, " ",
                             Name(ctx.InDType(var)));
    if (s.role == kScalar && own.is_static() && own.numel() != 1)
      return InvalidArgument(s.key.name, " has shape ", own.ToString(), ", expected a scalar");
    if ((s.role == kState || (s.role == kGrad && !sparse)) && own.is_static() &&
        shape.is_static() && !(own == shape))
      return InvalidArgument(s.key.name, " has shape ", own.ToString(), ", ", var.name, " ",
                             shape.ToString());
  }
  for (const TfApplySlot& s : slots)
    if (s.role == kState) ctx.SetOut(s.out, ctx.InShape(s.key), ctx.InDType(var));
  return Status::Ok();
}

Status Gather(const KernelContext& ctx, std::span<const TfApplySlot> slots, bool sparse,
              Operands* o) {
  const Tensor& var = ctx.In(slots.front().key);
  o->numel = var.numel();
  size_t states = 0, scalars = 0;
  for (const TfApplySlot& s : slots) {
    const Tensor& t = ctx.In(s.key);
    if (t.dtype() != var.dtype()) return DTypeMismatch(var.dtype(), t);
    if (s.role == kScalar) o->scalar[scalars++] = ScalarOf(t);
    if (s.role == kState && t.numel() != var.numel())
      return InvalidArgument(s.key.name, " has shape ", t.shape().ToString(), ", ",
                             slots.front().key.name, " ", var.shape().ToString());
    if (s.role == kGrad) o->grad = t;
  }
  if (sparse) {
    o->indices = ctx.In("indices");
    HEDDLE_RETURN_IF_ERROR(CheckIntDType(o->indices.dtype(), "indices"));
    if (var.rank() == 0)
      return InvalidArgument(slots.front().key.name, " is a scalar, has no rows");
    o->rows = var.dim(0);
    o->row = o->rows == 0 ? 0 : var.numel() / o->rows;
    if (o->grad.numel() != o->indices.numel() * o->row && o->rows > 0)
      return InvalidArgument("the gradient has shape ", o->grad.shape().ToString(), " for ",
                             o->indices.numel(), " rows of ", o->row, " elements");
    for (const auto part : Stretches(o->indices.numel()))
      for (int64_t i = part.begin; i < part.end; ++i)
        if (const int64_t v = IntAt(o->indices, i); v < 0 || v >= o->rows)
          return OutOfRange("indices holds ", v, " at position ", i, ", expected 0 to ",
                            o->rows - 1);
  } else if (o->grad.numel() != var.numel()) {
    return InvalidArgument("the gradient has shape ", o->grad.shape().ToString(), ", ",
                           slots.front().key.name, " ", var.shape().ToString());
  }
  for (const TfApplySlot& s : slots) {
    if (s.role != kState) continue;
    const Tensor& from = ctx.In(s.key);
    Tensor& to = ctx.Out(s.out);
    if (to.raw() == o->grad.raw() && to.raw() != from.raw()) o->grad = o->grad.Clone();
    if (to.raw() != from.raw()) CopyBytes(ctx, from.raw(), to.mutable_raw(), from.bytes());
    o->state[states++] = to.mutable_raw();
  }
  return Status::Ok();
}

}  // namespace heddle::tf_apply
