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

HEDDLE_EXAMPLES(is_empty, R"(
example no elements
in X float32 [0, 3]
out Out bool [] 1

example some
in X float32 [2, 3] 0.41 0.75 -0.82 -0.53 -0.47 -0.38
out Out bool [] 0

example int64
in X int64 [1] 4
out Out bool [] 0
)")
