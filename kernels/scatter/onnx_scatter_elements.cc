#include "kernels/index/elements_at.h"

namespace heddle {
namespace {

Status OnnxScatterElementsShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("data");
  if (!AllStatic(ctx, {"data", "indices", "updates"}))
    return SameRank(ctx, "data", "output", x.rank());
  HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(ctx.Int("axis"), x.rank()));
  HEDDLE_RETURN_IF_ERROR(CheckElementIndices(x, ctx.InShape("indices"), axis));
  HEDDLE_RETURN_IF_ERROR(CheckIntDType(ctx.InDType("indices"), "indices"));
  if (!(ctx.InShape("indices") == ctx.InShape("updates")))
    return InvalidArgument("updates ", ctx.InShape("updates").ToString(), " and indices ",
                           ctx.InShape("indices").ToString(), " must have one shape");
  if (ctx.InDType("updates") != ctx.InDType("data"))
    return InvalidArgument("updates is ", Name(ctx.InDType("updates")), ", data ",
                           Name(ctx.InDType("data")), ", expected one dtype");
  ctx.SetOut("output", x, ctx.InDType("data"));
  return Status::Ok();
}

Status OnnxScatterElements(KernelContext& ctx) {
  const Tensor& x = ctx.In("data");
  const Tensor& updates = ctx.In("updates");
  Tensor& out = ctx.Out("output");
  HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(ctx.Int("axis"), x.rank()));
  if (out.raw() != x.raw()) CopyBytes(ctx, x.raw(), out.mutable_raw(), x.bytes());
  Status status;
  VisitAnyDType(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = updates.data<T>();
    T* to = out.mutable_data<T>();
    status = VisitScatterReduction<T>(ctx.Str("reduction"), [&](auto put) {
      return ForEachElementIndex(x.shape(), ctx.In("indices"), axis,
                                 [&](int64_t at, int64_t i) { put(to[at], from[i]); });
    });
  });
  return status;
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_scatter_elements) {
  op.Doc("data with updates put in or combined at the positions that indices gives along one axis");
  op.Input("data").Input("indices").Input("updates").Output("output");
  op.Attr("axis", 0).Attr("reduction", "none").Inplace("data", "output");
  op.InferShape(OnnxScatterElementsShape).KernelKey("data").AnyKernel(OnnxScatterElements);
}
