#include "kernels/operands/operands.h"

namespace heddle {
namespace {

Status OnnxEyeLikeShape(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckRank(ctx.InShape("input"), 2, "input"));
  HEDDLE_ASSIGN_OR_RETURN(const DType dtype, DTypeOfOnnx(ctx.Int("dtype"), ctx.InDType("input")));
  ctx.SetOut("output", ctx.InShape("input"), dtype);
  return Status::Ok();
}

Status OnnxEyeLike(KernelContext& ctx) {
  Tensor& out = ctx.Out("output");
  const int64_t rows = out.dim(0), cols = out.dim(1), k = ctx.Int("k");
  FillElements(ctx, out, 0);
  VisitAnyDType(out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* to = out.mutable_data<T>();
    if (k > cols || k < -rows) return;
    for (int64_t i = std::max<int64_t>(0, -k); i < rows && i + k < cols; ++i)
      to[i * cols + i + k] = ConvertTo<T>(1.0F);
  });
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_eye_like) {
  op.Doc("zeros in the shape of a matrix with ones on diagonal k");
  op.Input("input", kNoBuffer).Output("output").Attr("dtype", 0).Attr("k", 0);
  op.InferShape(OnnxEyeLikeShape).AnyKernel(OnnxEyeLike);
}
