// Slices of `data` along an axis, one for each index; indices below zero count from the end.
#include "core/operands/any_address.h"
#include "kernels/index/gather_rows.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

Status OnnxGatherShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("data");
  const Shape& index = ctx.InShape("indices");
  if (!x.known_rank() || !index.known_rank()) return ctx.Defer();
  if (x.rank() == 0) return InvalidArgument("data is a scalar, expected at least one dimension");
  HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(ctx.Int("axis"), x.rank()));
  if (x.rank() - 1 + index.rank() > Shape::kMaxRank)
    return InvalidArgument("the result of data ", x.ToString(), " and indices ", index.ToString(),
                           " has more than ", Shape::kMaxRank, " dimensions");
  Shape out;
  for (int i = 0; i < axis; ++i) out.push_back(x[i]);
  for (const int64_t d : index) out.push_back(d);
  for (int i = axis + 1; i < x.rank(); ++i) out.push_back(x[i]);
  ctx.SetOut("output", out, ctx.InDType("data"));
  return Status::Ok();
}

Status OnnxGather(KernelContext& ctx) {
  const Tensor& x = ctx.In("data");
  const Tensor& index = ctx.In("indices");
  HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(ctx.Int("axis"), x.rank()));
  if (index.dtype() != DType::kI32 && index.dtype() != DType::kI64)
    return InvalidArgument("indices are ", Name(index.dtype()), ", expected int32 or int64");
  const IndexRange range{.size = x.shape()[axis], .wrap = true};
  HEDDLE_RETURN_IF_ERROR(CheckIndices(index, range, "indices"));
  GatherRows(ctx, x.raw(), index, range, x.shape().Product(0, axis),
             x.shape().Product(axis + 1, x.rank()) * static_cast<int64_t>(SizeOf(x.dtype())),
             ctx.Out("output").mutable_raw());
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_gather) {
  op.Doc("slices of data along an axis, picked by indices of any rank");
  op.Input("data", kAnyAddress).Input("indices").Output("output").Attr("axis", 0);
  op.InferShape(OnnxGatherShape).KernelKey("data").AnyKernel(OnnxGather);
}
