// tile: X repeated along its dimensions.
#include "core/shapes.h"
#include "kernels/index/index_args.h"
#include "kernels/shape/repeat.h"

namespace heddle {
namespace {

Status TileShape(ShapeContext& ctx) {
  IntArgs times;
  HEDDLE_RETURN_IF_ERROR(
      ReadInts(ctx, "repeat_times_tensor", "RepeatTimes", "repeat_times", &times));
  return RepeatShape(ctx, times, false);
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

HEDDLE_EXAMPLES(tile, R"(
example float64 4, repeat_times -1
attr repeat_times INTS [-1]
in X float64 [4] 0.2 0.594 0.397 0.791
in repeat_times_tensor int32 [1] 2
out Out float64 [8] 0.2 0.594 0.397 0.791 0.2 0.594 0.397 0.791

example float64 4x3, repeat_times 1 -1
attr repeat_times INTS [1, -1]
in X float64 [4, 3] 0.156 0.614 0.767 0.462 0.08 0.92 0.843 0.691 0.309 0.385 0.233 0.538
in repeat_times_tensor int32 [1] 1
in repeat_times_tensor int32 [1] 1
out Out float64 [4, 3] 0.156 0.614 0.767 0.462 0.08 0.92 0.843 0.691 0.309 0.385 0.233 0.538

example int32 3, repeat_times 1 3 1
attr repeat_times INTS [1, 3, 1]
in RepeatTimes int32 [3] 1 3 1
in X float32 [1] 0.124
out Out float32 [1, 3, 1] 0.124 0.124 0.124

example float32 1x3, repeat_times 2
attr repeat_times INTS [2]
in X float32 [1, 3] 0.1 0.38 -0.5
out Out float32 [1, 6] 0.1 0.38 -0.5 0.1 0.38 -0.5

example int64 4, repeat_times -1
attr repeat_times INTS [-1]
in X int64 [4] 1 1 0 0
in repeat_times_tensor int32 [1] 2
out Out int64 [8] 1 1 0 0 1 1 0 0

example bool 4, repeat_times -1
attr repeat_times INTS [-1]
in X bool [4] 0 0 0 1
in repeat_times_tensor int32 [1] 2
out Out bool [8] 0 0 0 1 0 0 0 1

example complex64 4, repeat_times -1
attr repeat_times INTS [-1]
in X complex64 [4] 0.2+0.8j 0.594+0.3j 0.397+0.5j 0.791-0.7j
in repeat_times_tensor int32 [1] 2
out Out complex64 [8] 0.2+0.8j 0.594+0.3j 0.397+0.5j 0.791-0.7j 0.2+0.8j 0.594+0.3j 0.397+0.5j
  0.791-0.7j
)")

HEDDLE_EXAMPLES(tile_grad, R"(
example float64 8
in Out@GRAD float64 [8] -1 0.9 -0.1 0.2 0.7 0.5 0.9 0.7
in RepeatTimes int32 [1] 2
in X float64 [4] 0.212 0.604 0.8 0.408
out X@GRAD float64 [4] -0.30000000000000004 1.4 0.8 0.8999999999999999

example float64 scalar
in Out@GRAD float64 [] -0.2
in X float64 [] 0.696
out X@GRAD float64 [] -0.2

example float32 8
in Out@GRAD float32 [8] -1 0.9 -0.1 0.2 0.7 0.5 0.9 0.7
in RepeatTimes int32 [1] 2
in X float32 [4] 0.212 0.604 0.8 0.408
out X@GRAD float32 [4] -0.3 1.4 0.79999995 0.9

example bool 8
in Out@GRAD bool [8] 1*8
in RepeatTimes int32 [1] 2
in X bool [4] 1*4
out X@GRAD bool [4] 1*4
)")
