// tile: X repeated along its dimensions.
#include "core/shapes.h"
#include "kernels/base/index_args.h"
#include "kernels/shape/repeat.h"

namespace heddle {
namespace {

Status TileShape(ShapeContext& ctx) {
  IntArgs times;
  HEDDLE_RETURN_IF_ERROR(
      ReadInts(ctx, "repeat_times_tensor", "RepeatTimes", "repeat_times", &times));
  return RepeatShape(ctx, times, ctx.Bool("same_rank"));
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(tile) {
  op.Doc(
        "X repeated repeat_times[i] times along dimension i; with same_rank a number for each is "
        "needed.")
      .Input("X")
      .Input("RepeatTimes", kOptional | kShapeValue)
      .Input("repeat_times_tensor", kOptional | kList | kShapeValue)
      .Output("Out")
      .Attr("repeat_times", Ints{})
      .Attr("same_rank", false)
      .InferShape(TileShape)
      .Prepare(PrepareTile)
      .AnyKernel(RunTile);
}

HEDDLE_OP(tile_grad) {
  op.Input("Out@GRAD")
      .Input("X", kNoBuffer)
      .Input("RepeatTimes", kOptional | kNoBuffer)
      .Input("repeat_times_tensor", kOptional | kList | kNoBuffer)
      .Output("X@GRAD")
      .InferShape(GradLikeInputs)
      .AnyKernel(RunTileGrad);
}
