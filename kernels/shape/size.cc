// size and is_empty.
#include "core/shapes.h"

namespace heddle {
namespace {

Status SizeShape(ShapeContext& ctx) {
  ctx.SetOut("Out", {}, DType::kI64);
  return Status::Ok();
}
Status RunSize(KernelContext& ctx) {
  ctx.Out("Out").mutable_data<int64_t>()[0] = ctx.In("Input").numel();
  return Status::Ok();
}

Status IsEmptyShape(ShapeContext& ctx) {
  ctx.SetOut("Out", {}, DType::kBool);
  return Status::Ok();
}
Status RunIsEmpty(KernelContext& ctx) {
  ctx.Out("Out").mutable_data<bool>()[0] = ctx.In("X").numel() == 0;
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(size) {
  op.Doc("Number of elements, as int64.").Input("Input", kNoBuffer).Output("Out");
  op.InferShape(SizeShape).AnyKernel(RunSize);
}
HEDDLE_OP(is_empty) {
  op.Doc("Whether X has no elements.").Input("X", kNoBuffer).Output("Out");
  op.InferShape(IsEmptyShape).AnyKernel(RunIsEmpty);
}
