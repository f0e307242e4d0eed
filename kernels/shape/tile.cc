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
)")

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
