// size: the number of elements.

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

}  // namespace
}  // namespace heddle

HEDDLE_OP(size) {
  op.Doc("Number of elements, as int64.").Input("Input", kNoBuffer).Output("Out");
  op.InferShape(SizeShape).AnyKernel(RunSize);
}
