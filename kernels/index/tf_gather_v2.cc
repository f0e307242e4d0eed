// Slices along an axis, picked by indices; leading batch_dims axes are shared with the indices.
#include "core/interrupts.h"
#include "core/operands/any_address.h"
#include "kernels/base/index_args.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

struct GatherAxes {
  int axis = 0, batch = 0;
  Shape out;
};

Result<GatherAxes> AxesOf(const Shape& params, const Shape& indices, int64_t axis,
                          int64_t batch_dims) {
  if (params.rank() == 0)
    return InvalidArgument("params is a scalar, expected at least one dimension");
  GatherAxes g;
  HEDDLE_ASSIGN_OR_RETURN(g.axis, NormalAxis(axis, params.rank()));
  const int64_t batch = batch_dims < 0 ? batch_dims + indices.rank() : batch_dims;
  if (batch < 0 || batch > indices.rank() || batch > g.axis)
    return InvalidArgument("batch_dims is ", batch_dims, " for indices ", indices.ToString(),
                           " and axis ", g.axis, ", expected at most both");
  g.batch = static_cast<int>(batch);
  if (params.rank() - 1 + indices.rank() - g.batch > Shape::kMaxRank)
    return InvalidArgument("the result of params ", params.ToString(), " and indices ",
                           indices.ToString(), " has more than ", Shape::kMaxRank, " dimensions");
  for (int i = 0; i < g.batch; ++i)
    if (params[i] >= 0 && indices[i] >= 0 && params[i] != indices[i])
      return InvalidArgument("params ", params.ToString(), " and indices ", indices.ToString(),
                             " differ in batch dimension ", i);
  for (int i = 0; i < g.axis; ++i) g.out.push_back(params[i]);
  for (int i = g.batch; i < indices.rank(); ++i) g.out.push_back(indices[i]);
  for (int i = g.axis + 1; i < params.rank(); ++i) g.out.push_back(params[i]);
  return g;
}

Status GatherAlongAxisShape(ShapeContext& ctx) {
  const Shape &params = ctx.InShape("params"), &indices = ctx.InShape("indices");
  if (!params.known_rank() || !indices.known_rank() || !Known(ctx, "axis")) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const int64_t axis, IntIn(ctx, "axis", 0));
  HEDDLE_ASSIGN_OR_RETURN(const GatherAxes g, AxesOf(params, indices, axis, ctx.Int("batch_dims")));
  ctx.SetOut("output", g.out, ctx.InDType("params"));
  return Status::Ok();
}

Status GatherAlongAxis(KernelContext& ctx) {
  const Tensor &x = ctx.In("params"), &indices = ctx.In("indices");
  HEDDLE_RETURN_IF_ERROR(CheckIntDType(indices.dtype(), "indices"));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t axis, IntIn(ctx, "axis", 0));
  HEDDLE_ASSIGN_OR_RETURN(const GatherAxes g,
                          AxesOf(x.shape(), indices.shape(), axis, ctx.Int("batch_dims")));
  const int64_t size = x.shape()[g.axis];
  for (const auto part : Stretches(indices.numel()))
    for (int64_t i = part.begin; i < part.end; ++i)
      if (const int64_t v = IntAt(indices, i); v < 0 || v >= size)
        return OutOfRange("indices holds ", v, " at position ", i, ", expected 0 to ", size - 1);
  const int64_t batches = x.shape().Product(0, g.batch);
  const int64_t outer = x.shape().Product(g.batch, g.axis);
  const int64_t picks = indices.shape().Product(g.batch, indices.rank());
  const int64_t row =
      x.shape().Product(g.axis + 1, x.rank()) * static_cast<int64_t>(SizeOf(x.dtype()));
  const auto* from = static_cast<const std::byte*>(x.raw());
  auto* to = static_cast<std::byte*>(ctx.Out("output").mutable_raw());
  if (row == 0 || picks == 0) return Status::Ok();
  const int64_t rows = batches * outer * picks;
  ctx.ParallelFor(rows, 1 + 65536 / row, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t block = i / picks, at = i % picks;
      const int64_t index = IntAt(indices, block / outer * picks + at);
      CopyRow(to + i * row, from + (block * size + index) * row, row);
    }
  });
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(tf_gather_v2) {
  op.Doc("slices of params along axis, picked by indices of any rank");
  op.Input("params", kAnyAddress).Input("indices").Input("axis", kOptional | kShapeValue);
  op.Output("output");
  op.Attr("batch_dims", 0)
      .InferShape(GatherAlongAxisShape)
      .KernelKey("params")
      .AnyKernel(GatherAlongAxis);
}
