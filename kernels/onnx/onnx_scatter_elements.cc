#include "kernels/onnx/elements_at.h"

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

HEDDLE_EXAMPLES(onnx_scatter_elements, R"(
example maxima with NaN
attr reduction STRING "max"
in data float32 [6] nan 1 nan inf nan 2
in indices int64 [6] 0 1 2 3 4 5
in updates float32 [6] 1 nan nan nan -inf 3
out output float32 [6] 1 nan nan nan -inf 3

example minima with NaN
attr reduction STRING "min"
in data float32 [6] nan 1 nan inf nan 2
in indices int64 [6] 0 1 2 3 4 5
in updates float32 [6] 1 nan nan nan -inf 3
out output float32 [6] 1 nan nan nan -inf 2

example axis 1
attr axis INT 1
in data float32 [1, 5] 1 2 3 4 5
in indices int64 [1, 2] 1 -2
in updates float32 [1, 2] 1.25 2.5
out output float32 [1, 5] 1 1.25 3 2.5 5

example added
attr axis INT 1
attr reduction STRING "add"
in data float32 [1, 5] 1 2 3 4 5
in indices int64 [1, 2] 1 1
in updates float32 [1, 2] 1.25 2.5
out output float32 [1, 5] 1 5.75 3 4 5

example multiplied
attr reduction STRING "mul"
in data int64 [3, 2] 1 2 3 4 5 6
in indices int64 [2, 2] 1 1 1 0
in updates int64 [2, 2] 3 -2 5 7
out output int64 [3, 2] 1 14 45 -8 5 6

example the greater one
attr reduction STRING "max"
in data float64 [3, 2] 1 2 3 4 5 6
in indices int32 [2, 2] 1 1 1 0
in updates float64 [2, 2] 2.5 -2 5 7
out output float64 [3, 2] 1 7 5 4 5 6

example the smaller one
attr reduction STRING "min"
in data float32 [3, 2] 1 2 3 4 5 6
in indices int32 [2, 2] 1 1 1 0
in updates float32 [2, 2] 2.5 -2 5 7
out output float32 [3, 2] 1 2 2.5 -2 5 6

example booleans added
# oracle reference
attr reduction STRING "add"
in data bool [2, 2] 1 0 0 0
in indices int64 [1, 2] 0 1
in updates bool [1, 2] 0 1
out output bool [2, 2] 1 0 0 1
)")
