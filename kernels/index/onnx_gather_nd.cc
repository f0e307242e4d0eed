#include "core/memory/watched_bytes.h"
#include "core/operands/any_address.h"
#include "kernels/index/elements_at.h"

namespace heddle {
namespace {

Status OnnxGatherNdShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("data");
  const Shape& index = ctx.InShape("indices");
  if (!x.is_static() || !index.is_static()) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const TupleIndex t, TuplesOf(x, index, ctx.Int("batch_dims")));
  HEDDLE_RETURN_IF_ERROR(CheckIntDType(ctx.InDType("indices"), "indices"));
  if (index.rank() - 1 + x.rank() - t.batch - t.k > Shape::kMaxRank)
    return InvalidArgument("the result of data ", x.ToString(), " and indices ", index.ToString(),
                           " has more than ", Shape::kMaxRank, " dimensions");
  Shape out(index.dims().first(static_cast<size_t>(index.rank() - 1)));
  for (int i = t.batch + t.k; i < x.rank(); ++i) out.push_back(x[i]);
  ctx.SetOut("output", out, ctx.InDType("data"));
  return Status::Ok();
}

Status OnnxGatherNd(KernelContext& ctx) {
  const Tensor& x = ctx.In("data");
  const Tensor& index = ctx.In("indices");
  HEDDLE_ASSIGN_OR_RETURN(const TupleIndex t,
                          TuplesOf(x.shape(), index.shape(), ctx.Int("batch_dims")));
  const size_t size = SizeOf(x.dtype()), row = static_cast<size_t>(t.row) * size;
  const auto* from = static_cast<const std::byte*>(x.raw());
  auto* to = static_cast<std::byte*>(ctx.Out("output").mutable_raw());
  return ForEachTuple(t, x.shape(), index, [&](int64_t at, int64_t i) {
    WatchedMemcpy(to + static_cast<size_t>(i) * row, from + static_cast<size_t>(at) * size, row);
  });
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_gather_nd) {
  op.Doc("rows of data that tuples of indices name, behind batch_dims common dimensions");
  op.Input("data", kAnyAddress).Input("indices").Output("output").Attr("batch_dims", 0);
  op.InferShape(OnnxGatherNdShape).KernelKey("data").AnyKernel(OnnxGatherNd);
}
