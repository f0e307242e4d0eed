// tile and the old expand: X repeated along its dimensions.
#include <algorithm>

#include "core/shapes.h"
#include "kernels/index/index_args.h"
#include "kernels/strided/index_expand.h"

namespace heddle {
namespace {

// Ranks are aligned at the end: missing repeats and missing dimensions are 1.
Status RepeatShape(ShapeContext& ctx, const IntArgs& times, bool same_rank) {
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank() || times.n < 0) return ctx.Defer();
  const int rank = std::max(x.rank(), times.n);
  if (rank > Shape::kMaxRank || (same_rank && times.n != x.rank()))
    return InvalidArgument("X of shape ", x.ToString(), " cannot be repeated by ", times.n,
                           " factors");
  Shape out;
  for (int i = 0; i < rank; ++i) {
    const int xi = i - (rank - x.rank()), ti = i - (rank - times.n);
    const int64_t d = xi < 0 ? 1 : x[xi], t = ti < 0 ? 1 : times[ti];
    if (times.known && t < 0) return InvalidArgument("a repeat is ", t, "; expected 0 or more");
    out.push_back(d < 0 || t < 0 ? -1 : d * t);
  }
  ctx.SetOut("Out", out, ctx.InDType("X"));
  if (x.rank() > 0 && out[0] == x[0]) ctx.ShareLoD("X", "Out");
  return Status::Ok();
}

Status TileShape(ShapeContext& ctx) {
  IntArgs times;
  HEDDLE_RETURN_IF_ERROR(
      ReadInts(ctx, "repeat_times_tensor", "RepeatTimes", "repeat_times", &times));
  return RepeatShape(ctx, times, false);
}

Status ExpandShape(ShapeContext& ctx) {
  IntArgs times;
  HEDDLE_RETURN_IF_ERROR(
      ReadInts(ctx, "expand_times_tensor", "ExpandTimes", "expand_times", &times));
  return RepeatShape(ctx, times, true);
}

Result<std::unique_ptr<KernelState>> Prepare(PrepareContext& ctx) {
  return PrepareRepeat(ctx.InVar("X")->tensor(), ctx.OutShape("Out"));
}

Status Tile(KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  Tensor& out = ctx.Out("Out");
  if (!ctx.has_state()) return RunRepeat(ctx, x, out);
  ctx.State<CopyState>().copy.Run(ctx, x.raw(), out.mutable_raw());
  return Status::Ok();
}

Status TileGrad(KernelContext& ctx) {
  return RunRepeatSum(ctx, ctx.In("Out@GRAD"), ctx.Out("X@GRAD"));
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(tile) {
  op.Doc("X repeated repeat_times[i] times along dimension i.")
      .Input("X")
      .Input("RepeatTimes", kOptional | kShapeValue)
      .Input("repeat_times_tensor", kOptional | kList | kShapeValue)
      .Output("Out")
      .Attr("repeat_times", Ints{})
      .InferShape(TileShape)
      .Prepare(Prepare)
      .AnyKernel(Tile);
}
HEDDLE_OP(tile_grad) {
  op.Input("Out@GRAD")
      .Input("X", kNoBuffer)
      .Input("RepeatTimes", kOptional | kNoBuffer)
      .Input("repeat_times_tensor", kOptional | kList | kNoBuffer)
      .Output("X@GRAD")
      .InferShape(GradLikeInputs)
      .AnyKernel(TileGrad);
}
HEDDLE_OP(expand) {
  op.Doc("X repeated expand_times[i] times along dimension i.")
      .Input("X")
      .Input("ExpandTimes", kOptional | kShapeValue)
      .Input("expand_times_tensor", kOptional | kList | kShapeValue)
      .Output("Out")
      .Attr("expand_times", Ints{})
      .InferShape(ExpandShape)
      .Prepare(Prepare)
      .AnyKernel(Tile);
}
HEDDLE_OP(expand_grad) {
  op.Input("Out@GRAD")
      .Input("X", kNoBuffer)
      .Input("ExpandTimes", kOptional | kNoBuffer)
      .Input("expand_times_tensor", kOptional | kList | kNoBuffer)
      .Output("X@GRAD")
      .InferShape(GradLikeInputs)
      .AnyKernel(TileGrad);
}
