// is_empty: whether a tensor has no elements.

namespace heddle {
namespace {

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

HEDDLE_OP(is_empty) {
  op.Doc("Whether X has no elements.").Input("X", kNoBuffer).Output("Out");
  op.InferShape(IsEmptyShape).AnyKernel(RunIsEmpty);
}
