// Blocks of a tensor; what lies outside is an error.
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

Status CheckLists(const Shape& x, std::span<const int64_t> begin, std::span<const int64_t> size) {
  const auto rank = static_cast<size_t>(x.rank());
  if (begin.size() != rank || size.size() != rank)
    return InvalidArgument("begin and size have ", begin.size(), " and ", size.size(),
                           " elements, expected one for each axis of ", x.ToString());
  for (int i = 0; i < x.rank(); ++i) {
    const int64_t b = begin[static_cast<size_t>(i)], s = size[static_cast<size_t>(i)];
    if (x[i] < 0) continue;
    if (b < 0 || b > x[i] || s < -1 || s > x[i] - b)
      return OutOfRange("begin ", b, " and size ", s, " of axis ", i, " leave the tensor of shape ",
                        x.ToString());
  }
  return Status::Ok();
}

Status SliceWindowShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("input");
  if (!x.known_rank()) return ctx.Defer();
  if (!Known(ctx, "begin") || !Known(ctx, "size")) {
    Shape out = x;
    for (int i = 0; i < x.rank(); ++i) out[i] = -1;
    if (Known(ctx, "size")) {
      HEDDLE_ASSIGN_OR_RETURN(const ShortInts size, IntsIn(ctx, "size"));
      if (size.size() == static_cast<size_t>(x.rank()))
        for (int i = 0; i < x.rank(); ++i) out[i] = std::max<int64_t>(-1, size[size_t(i)]);
    }
    ctx.SetOut("output", out, ctx.InDType("input"));
    return Status::Ok();
  }
  HEDDLE_ASSIGN_OR_RETURN(const ShortInts begin, IntsIn(ctx, "begin"));
  HEDDLE_ASSIGN_OR_RETURN(const ShortInts size, IntsIn(ctx, "size"));
  HEDDLE_RETURN_IF_ERROR(CheckLists(x, begin, size));
  Shape out = x;
  for (int i = 0; i < x.rank(); ++i) {
    const int64_t b = begin[static_cast<size_t>(i)], s = size[static_cast<size_t>(i)];
    out[i] = s >= 0 ? s : x[i] < 0 ? -1 : x[i] - b;
  }
  ctx.SetOut("output", out, ctx.InDType("input"));
  return Status::Ok();
}

Status SliceWindow(KernelContext& ctx) {
  const Tensor& x = ctx.In("input");
  HEDDLE_ASSIGN_OR_RETURN(const ShortInts begin, IntsIn(ctx, "begin"));
  HEDDLE_ASSIGN_OR_RETURN(const ShortInts size, IntsIn(ctx, "size"));
  HEDDLE_RETURN_IF_ERROR(CheckLists(x.shape(), begin, size));
  Tensor& out = ctx.Out("output");
  if (out.numel() == 0) return Status::Ok();
  const auto from = RowMajorStrides(x.shape()), to = RowMajorStrides(out.shape());
  std::array<CopyDim, Shape::kMaxRank> dims;
  int64_t offset = 0;
  for (int i = 0; i < x.rank(); ++i) {
    dims[i] = {out.shape()[i], from[i], to[i]};
    offset += begin[static_cast<size_t>(i)] * from[i];
  }
  StridedCopy(SizeOf(x.dtype()), std::span(dims.data(), static_cast<size_t>(x.rank())), offset)
      .Run(ctx, x.raw(), out.mutable_raw());
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(tf_slice) {
  op.Doc("size elements from begin on along each axis; size -1: to the end");
  op.Input("input").Input("begin", kShapeValue).Input("size", kShapeValue).Output("output");
  op.InferShape(SliceWindowShape).AnyKernel(SliceWindow);
}
