#include "core/interrupts.h"
#include "kernels/base/shape_checks.h"

namespace heddle {
namespace {

Status InferAccuracy(ShapeContext& ctx) {
  const Shape &indices = ctx.InShape("Indices"), &label = ctx.InShape("Label");
  if (indices.known_rank() && indices.rank() != 2)
    return InvalidArgument("Indices must be [N, k], not ", indices.ToString());
  if (indices.is_static() && label.is_static() && label.numel() != indices[0])
    return InvalidArgument("Label ", label.ToString(), " must have one element per row of Indices ",
                           indices.ToString());
  HEDDLE_RETURN_IF_ERROR(CheckSameCount(ctx, "Out", "Indices"));
  ctx.SetOut("Accuracy", Shape{}, DType::kF32);
  if (ctx.HasOut("Correct")) ctx.SetOut("Correct", Shape{}, DType::kI32);
  if (ctx.HasOut("Total")) ctx.SetOut("Total", Shape{}, DType::kI32);
  return Status::Ok();
}

Status Accuracy(KernelContext& ctx) {
  const Tensor& in = ctx.In("Indices");
  const int64_t rows = in.dim(0), k = in.dim(1);
  const Labels indices(ctx, in), label(ctx, ctx.In("Label"));
  int32_t correct = 0;
  for (const int64_t i : Watched(rows)) {
    bool hit = false;
    for (int64_t j = 0; j < k; ++j) hit |= indices[i * k + j] == label[i];
    correct += hit;
  }
  *ctx.Out("Accuracy").mutable_data<float>() =
      rows == 0 ? 0.f : static_cast<float>(correct) / static_cast<float>(rows);
  if (Tensor* t = ctx.OutOpt("Correct")) *t->mutable_data<int32_t>() = correct;
  if (Tensor* t = ctx.OutOpt("Total")) *t->mutable_data<int32_t>() = static_cast<int32_t>(rows);
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(accuracy) {
  op.Doc("share of rows whose label is among the top-k indices")
      .Input("Out", kNoBuffer)
      .Input("Indices")
      .Input("Label")
      .Output("Accuracy")
      .Output("Correct", kOptional)
      .Output("Total", kOptional)
      .InferShape(InferAccuracy)
      .AnyKernel(Accuracy);
}
