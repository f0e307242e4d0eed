// eye: the identity matrix.
#include <algorithm>

#include "core/interrupts.h"
#include "kernels/base/convert.h"
#include "kernels/base/shape_arg.h"

namespace heddle {
namespace {

Status EyeShape(ShapeContext& ctx) {
  if (ctx.HasIn("Like")) {
    const Shape& like = ctx.InShape("Like");
    if (like.rank() != 2)
      return InvalidArgument("input Like has shape ", like.ToString(), ", expected rank 2");
    DType dtype = ctx.InDType("Like");
    if (ctx.Int("dtype") != -1) {
      HEDDLE_ASSIGN_OR_RETURN(dtype, CheckedDType(ctx.Int("dtype")));
    }
    ctx.SetOut("Out", like, dtype);
    return Status::Ok();
  }
  HEDDLE_ASSIGN_OR_RETURN(const DType dtype, CheckedDType(ctx.Int("dtype")));
  const int64_t rows = ctx.Int("num_rows");
  const int64_t columns = ctx.Int("num_columns") == -1 ? rows : ctx.Int("num_columns");
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, CheckedShape({rows, columns}, "the matrix"));
  ctx.SetOut("Out", shape, dtype);
  return Status::Ok();
}

Status RunEye(KernelContext& ctx) {
  Tensor& out = ctx.Out("Out");
  FillElements(ctx, out, 0);
  VisitAnyDType(out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const int64_t rows = out.dim(0), cols = out.dim(1), k = ctx.Int("diagonal");
    if (k > cols || k < -rows) return;
    const int64_t first = std::max<int64_t>(0, -k), last = std::min(rows, cols - k);
    for (const int64_t i : Watched(first, std::max(first, last)))
      out.mutable_data<T>()[i * cols + i + k] = ConvertTo<T>(1.0);
  });
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(eye) {
  op.Doc(
      "Ones on a diagonal, zeros elsewhere; of the shape of Like, and of its dtype if dtype is "
      "-1.");
  op.Input("Like", kOptional | kNoBuffer).Output("Out").Attr("num_rows", 0);
  op.Attr("num_columns", -1).Attr("dtype", 5).Attr("diagonal", 0).InferShape(EyeShape);
  op.AnyKernel(RunEye);
}
