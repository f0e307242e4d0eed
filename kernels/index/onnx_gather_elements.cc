#include "core/operands/any_address.h"
#include "kernels/index/elements_at.h"

namespace heddle {
namespace {

Status OnnxGatherElementsShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("data");
  const Shape& index = ctx.InShape("indices");
  if (!x.is_static() || !index.is_static()) return SameRank(ctx, "data", "output");
  HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(ctx.Int("axis"), x.rank()));
  HEDDLE_RETURN_IF_ERROR(CheckElementIndices(x, index, axis));
  HEDDLE_RETURN_IF_ERROR(CheckIntDType(ctx.InDType("indices"), "indices"));
  ctx.SetOut("output", index, ctx.InDType("data"));
  return Status::Ok();
}

Status OnnxGatherElements(KernelContext& ctx) {
  const Tensor& x = ctx.In("data");
  HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(ctx.Int("axis"), x.rank()));
  const size_t size = SizeOf(x.dtype());
  const auto* from = static_cast<const std::byte*>(x.raw());
  auto* to = static_cast<std::byte*>(ctx.Out("output").mutable_raw());
  return ForEachElementIndex(x.shape(), ctx.In("indices"), axis, [&](int64_t at, int64_t i) {
    std::memcpy(to + static_cast<size_t>(i) * size, from + static_cast<size_t>(at) * size, size);
  });
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_gather_elements) {
  op.Doc(
      "elements of data: indices gives their position along one axis, and the place in indices the "
      "positions along the others");
  op.Input("data", kAnyAddress).Input("indices").Output("output").Attr("axis", 0);
  op.InferShape(OnnxGatherElementsShape).KernelKey("data").AnyKernel(OnnxGatherElements);
}
