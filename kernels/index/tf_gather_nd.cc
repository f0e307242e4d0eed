// Slices that tuples of indices name.
#include "core/operands/any_address.h"
#include "kernels/index/nd_indices.h"

namespace heddle {
namespace {

Status GatherSlicesShape(ShapeContext& ctx) {
  const Shape &params = ctx.InShape("params"), &indices = ctx.InShape("indices");
  if (!params.known_rank() || !indices.known_rank()) return ctx.Defer();
  if (indices.rank() > 0 && indices[indices.rank() - 1] < 0) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const NdIndices nd, NdIndicesOf(params, indices));
  Shape out = nd.leading;
  if (out.rank() + params.rank() - static_cast<int>(nd.k) > Shape::kMaxRank)
    return InvalidArgument("the result of params ", params.ToString(), " and indices ",
                           indices.ToString(), " has more than ", Shape::kMaxRank, " dimensions");
  for (int i = static_cast<int>(nd.k); i < params.rank(); ++i) out.push_back(params[i]);
  ctx.SetOut("output", out, ctx.InDType("params"));
  return Status::Ok();
}

Status GatherSlices(KernelContext& ctx) {
  const Tensor &x = ctx.In("params"), &indices = ctx.In("indices");
  HEDDLE_RETURN_IF_ERROR(CheckIntDType(indices.dtype(), "indices"));
  HEDDLE_ASSIGN_OR_RETURN(const NdIndices nd, NdIndicesOf(x.shape(), indices.shape()));
  const auto size = static_cast<int64_t>(SizeOf(x.dtype())), row = nd.row * size;
  const auto* from = static_cast<const std::byte*>(x.raw());
  auto* to = static_cast<std::byte*>(ctx.Out("output").mutable_raw());
  return ForEachSlice(nd, x.shape(), indices, [&](int64_t at, int64_t i) {
    if (row > 0) CopyRow(to + i * row, from + at * size, row);
  });
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(tf_gather_nd) {
  op.Doc("slices of params that the last dimension of indices names");
  op.Input("params", kAnyAddress).Input("indices").Output("output");
  op.InferShape(GatherSlicesShape).KernelKey("params").AnyKernel(GatherSlices);
}
