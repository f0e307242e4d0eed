// expand: X repeated along its dimensions, the first version of tile.
#include "core/shapes.h"
#include "kernels/base/index_args.h"
#include "kernels/shape/repeat.h"

namespace heddle {
namespace {

Status ExpandShape(ShapeContext& ctx) {
  IntArgs times;
  HEDDLE_RETURN_IF_ERROR(
      ReadInts(ctx, "expand_times_tensor", "ExpandTimes", "expand_times", &times));
  return RepeatShape(ctx, times, true);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(expand) {
  op.Doc("X repeated expand_times[i] times along dimension i.")
      .Input("X")
      .Input("ExpandTimes", kOptional | kShapeValue)
      .Input("expand_times_tensor", kOptional | kList | kShapeValue)
      .Output("Out")
      .Attr("expand_times", Ints{})
      .InferShape(ExpandShape)
      .Prepare(PrepareTile)
      .AnyKernel(RunTile);
}

HEDDLE_OP(expand_grad) {
  op.Input("Out@GRAD")
      .Input("X", kNoBuffer)
      .Input("ExpandTimes", kOptional | kNoBuffer)
      .Input("expand_times_tensor", kOptional | kList | kNoBuffer)
      .Output("X@GRAD")
      .InferShape(GradLikeInputs)
      .AnyKernel(RunTileGrad);
}
