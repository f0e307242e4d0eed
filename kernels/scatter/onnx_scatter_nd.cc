#include "core/interrupts.h"
#include "kernels/index/elements_at.h"

namespace heddle {
namespace {

Status OnnxScatterNdShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("data");
  const Shape& index = ctx.InShape("indices");
  if (!AllStatic(ctx, {"data", "indices", "updates"}))
    return SameRank(ctx, "data", "output", x.rank());
  HEDDLE_ASSIGN_OR_RETURN(const TupleIndex t, TuplesOf(x, index, 0));
  HEDDLE_RETURN_IF_ERROR(CheckIntDType(ctx.InDType("indices"), "indices"));
  if (index.rank() - 1 + x.rank() - t.k > Shape::kMaxRank)
    return InvalidArgument("updates for data ", x.ToString(), " and indices ", index.ToString(),
                           " have more than ", Shape::kMaxRank, " dimensions");
  Shape expected(index.dims().first(static_cast<size_t>(index.rank() - 1)));
  for (int i = t.k; i < x.rank(); ++i) expected.push_back(x[i]);
  if (!(expected == ctx.InShape("updates")))
    return InvalidArgument("updates has shape ", ctx.InShape("updates").ToString(), ", expected ",
                           expected.ToString());
  if (ctx.InDType("updates") != ctx.InDType("data"))
    return InvalidArgument("updates is ", Name(ctx.InDType("updates")), ", data ",
                           Name(ctx.InDType("data")), ", expected one dtype");
  ctx.SetOut("output", x, ctx.InDType("data"));
  return Status::Ok();
}

Status OnnxScatterNd(KernelContext& ctx) {
  const Tensor& x = ctx.In("data");
  const Tensor& index = ctx.In("indices");
  const Tensor& updates = ctx.In("updates");
  Tensor& out = ctx.Out("output");
  HEDDLE_ASSIGN_OR_RETURN(const TupleIndex t, TuplesOf(x.shape(), index.shape(), 0));
  if (out.raw() != x.raw()) CopyBytes(ctx, x.raw(), out.mutable_raw(), x.bytes());
  Status status;
  VisitAnyDType(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = updates.data<T>();
    T* to = out.mutable_data<T>();
    status = VisitScatterReduction<T>(ctx.Str("reduction"), [&](auto put) {
      return ForEachTuple(t, x.shape(), index, [&](int64_t at, int64_t i) {
        for (const auto part : Stretches(t.row))
          for (int64_t k = part.begin; k < part.end; ++k) put(to[at + k], from[i * t.row + k]);
      });
    });
  });
  return status;
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_scatter_nd) {
  op.Doc("data with updates put in or combined at the rows that tuples of indices name");
  op.Input("data").Input("indices").Input("updates").Output("output");
  op.Attr("reduction", "none").Inplace("data", "output");
  op.InferShape(OnnxScatterNdShape).KernelKey("data").AnyKernel(OnnxScatterNd);
}
