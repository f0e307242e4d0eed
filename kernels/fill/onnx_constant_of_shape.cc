#include "core/memory/watched_bytes.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

Status OnnxConstantOfShapeShape(ShapeContext& ctx) {
  if (!Known(ctx, "input")) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const ShortInts dims, IntsIn(ctx, "input"));
  HEDDLE_ASSIGN_OR_RETURN(const Shape out, MakeShape(dims, "input"));
  HEDDLE_ASSIGN_OR_RETURN(const DType dtype, DTypeOfOnnx(ctx.Int("dtype"), DType::kF32));
  ctx.SetOut("output", out, dtype);
  return Status::Ok();
}

Status OnnxConstantOfShape(KernelContext& ctx) {
  Tensor& out = ctx.Out("output");
  if (out.dtype() == DType::kI64)
    WatchedFill(out.mutable_data<int64_t>(), out.numel(), ctx.Int("int_value"));
  else if (IsInteger(out.dtype()))
    FillElements(ctx, out, static_cast<double>(ctx.Int("int_value")));
  else
    FillElements(ctx, out, ctx.Float("value"));
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_constant_of_shape) {
  op.Doc("a tensor of a shape that is an operand: of value, or int_value where dtype is integral");
  op.Input("input", kShapeValue).Output("output");
  op.Attr("dtype", 1).Attr("value", 0.0).Attr("int_value", 0);
  op.InferShape(OnnxConstantOfShapeShape).AnyKernel(OnnxConstantOfShape);
}
