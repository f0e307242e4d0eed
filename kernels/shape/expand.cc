// expand: X repeated along its dimensions, the first version of tile.
#include "core/shapes.h"
#include "kernels/index/index_args.h"
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

HEDDLE_EXAMPLES(expand, R"(
example float64 4, expand_times -1
attr expand_times INTS [-1]
in X float64 [4] 0.2 0.594 0.397 0.791
in expand_times_tensor int32 [1] 2
out Out float64 [8] 0.2 0.594 0.397 0.791 0.2 0.594 0.397 0.791

example float64 4
in ExpandTimes int32 [1] 2
in X float64 [4] 0.2 0.594 0.791 0.397
out Out float64 [8] 0.2 0.594 0.791 0.397 0.2 0.594 0.791 0.397

example float64 2x3x4, expand_times 1 1 1
attr expand_times INTS [1, 1, 1]
in X float64 [2, 3, 4] 0.712 0.673 0.634 0.279 0.476 0.752 0.594 0.239 0.318 0.121 0.515 0.042 0.16
  0.358 0.2 0.082 0.791 0.909 0.831 0.397 0.949 0.555 0.436 0.87
out Out float64 [2, 3, 4] 0.712 0.673 0.634 0.279 0.476 0.752 0.594 0.239 0.318 0.121 0.515 0.042
  0.16 0.358 0.2 0.082 0.791 0.909 0.831 0.397 0.949 0.555 0.436 0.87

example float64 4, expand_times 2
attr expand_times INTS [2]
in X float64 [4] 0.408 0.212 0.8 0.604
out Out float64 [8] 0.408 0.212 0.8 0.604 0.408 0.212 0.8 0.604

example float32 4, expand_times -1
attr expand_times INTS [-1]
in X float32 [4] 0.2 0.594 0.397 0.791
in expand_times_tensor int32 [1] 2
out Out float32 [8] 0.2 0.594 0.397 0.791 0.2 0.594 0.397 0.791

example int64 4, expand_times -1
attr expand_times INTS [-1]
in X int64 [4] 1 1 0 0
in expand_times_tensor int32 [1] 2
out Out int64 [8] 1 1 0 0 1 1 0 0

example bool 4, expand_times -1
attr expand_times INTS [-1]
in X bool [4] 0 0 0 1
in expand_times_tensor int32 [1] 2
out Out bool [8] 0 0 0 1 0 0 0 1
)")

HEDDLE_EXAMPLES(expand_grad, R"(
example float64 8
in ExpandTimes int32 [1] 2
in Out@GRAD float64 [8] -1 0.9 -0.1 0.2 0.7 0.5 0.9 0.7
in X float64 [4] 0.212 0.8 0.604 0.408
out X@GRAD float64 [4] -0.30000000000000004 1.4 0.8 0.8999999999999999

example float64 8, no. 2
in Out@GRAD float64 [8] -1 0.9 -0.1 0.2 0.7 0.5 0.9 0.7
in X float64 [4] 0.212 0.604 0.8 0.408
in expand_times_tensor int32 [1] 2
out X@GRAD float64 [4] -0.30000000000000004 1.4 0.8 0.8999999999999999

example float64 8x9
in Out@GRAD float64 [8, 9] -0.8 -0.4 0.6 0 -0.8 -0.8 0.7 0.7 -0.2 0.5 -0.7 0.9 -0.9 0.7 0.1 0.8 0.8
  -0.7 -0.5 -0.6 0.6 -0.9 0.6 0.7 -0.4 -0.7 0.3 0.7 -0.3 0.5 -0.2 0 0.8 -0.6 0.5 -0.8 0.2 1 0.1 -0.1
  -0.9 0.6 -0.4 0.4 -0 -0.3 -0.5 -1 -0.7 0.4 -0.7 -0.1 -0.3 -0.1 -0.2 0.7 -0.9 0.1 -0.9 0.5 -0.3 -0
  -0 0.8 0.9 -1 -0.5 0.1 0.2 -0.7 0.4 -0.8
in X float64 [4, 3] 0.155 0.614 0.766 0.461 0.079 0.919 0.843 0.69 0.308 0.384 0.232 0.537
in expand_times_tensor int32 [1] 2
in expand_times_tensor int32 [1] 3
out X@GRAD float64 [4, 3] -0.40000000000000013 -1.1102230246251565e-16 0.2999999999999999
  -0.6999999999999998 0.4000000000000001 -1.5 -2.1999999999999997 -0.9 1.2 -0.4999999999999999 1.6
  -1.1

example float32 8
in ExpandTimes int32 [1] 2
in Out@GRAD float32 [8] -1 0.9 -0.1 0.2 0.7 0.5 0.9 0.7
in X float32 [4] 0.212 0.8 0.604 0.408
out X@GRAD float32 [4] -0.3 1.4 0.79999995 0.9
)")
