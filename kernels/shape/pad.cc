// pad: constant padding of every dimension.
#include "kernels/strided/index_pad.h"

namespace heddle {
namespace {

Status ReadPadding(const OpContext& ctx, Padding* pad) {
  const Ints& list = ctx.IntList("paddings");
  if (list.size() % 2 != 0 || list.size() > 2 * static_cast<size_t>(Shape::kMaxRank))
    return InvalidArgument("'paddings' has ", list.size(), " values; expected two per dimension");
  pad->rank = static_cast<int>(list.size() / 2);
  for (int i = 0; i < pad->rank; ++i) {
    pad->before[i] = list[2 * static_cast<size_t>(i)];
    pad->after[i] = list[2 * static_cast<size_t>(i) + 1];
  }
  return Status::Ok();
}

Status PadShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank()) return ctx.Defer();
  Padding pad;
  HEDDLE_RETURN_IF_ERROR(ReadPadding(ctx, &pad));
  HEDDLE_ASSIGN_OR_RETURN(const Shape out, PaddedShape(x, pad, PadMode::kConstant));
  ctx.SetOut("Out", out, ctx.InDType("X"));
  if (x.rank() > 0 && out[0] == x[0]) ctx.ShareLoD("X", "Out");
  return Status::Ok();
}

Status GradShape(ShapeContext& ctx) {
  Shape x = ctx.InShape("Out@GRAD");
  if (!x.known_rank()) return ctx.Defer();
  Padding pad;
  HEDDLE_RETURN_IF_ERROR(ReadPadding(ctx, &pad));
  if (pad.rank != x.rank())
    return InvalidArgument("there are paddings for ", pad.rank, " dimensions, but 'Out@GRAD' has ",
                           x.rank());
  for (int i = 0; i < x.rank(); ++i) {
    if (x[i] < 0) continue;
    x[i] -= pad.before[i] + pad.after[i];
    if (x[i] < 0)
      return InvalidArgument("'Out@GRAD' of shape ", ctx.InShape("Out@GRAD").ToString(),
                             " is smaller than its padding");
  }
  ctx.SetOut("X@GRAD", x, ctx.InDType("Out@GRAD"));
  return Status::Ok();
}

Status Pad(KernelContext& ctx) {
  Padding pad;
  HEDDLE_RETURN_IF_ERROR(ReadPadding(ctx, &pad));
  return RunPad(ctx, ctx.In("X"), pad, PadMode::kConstant, ctx.Float("pad_value"), ctx.Out("Out"));
}

Status PadGrad(KernelContext& ctx) {
  Padding pad;
  HEDDLE_RETURN_IF_ERROR(ReadPadding(ctx, &pad));
  return RunPadGrad(ctx, ctx.In("Out@GRAD"), pad, PadMode::kConstant, ctx.Out("X@GRAD"));
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(pad) {
  op.Doc("X with pad_value around it; paddings: before and after each dimension in turn.")
      .Input("X")
      .Output("Out")
      .Attr("paddings", Ints{})
      .Attr("pad_value", 0.0)
      .InferShape(PadShape)
      .AnyKernel(Pad);
}

HEDDLE_OP(pad_grad) {
  op.Input("Out@GRAD")
      .Output("X@GRAD")
      .Attr("paddings", Ints{})
      .InferShape(GradShape)
      .AnyKernel(PadGrad);
}

HEDDLE_EXAMPLES(pad, R"(
example float64 2, pad_value 2, paddings 2 1
attr pad_value FLOAT 2.0
attr paddings INTS [2, 1]
in X float64 [2] -0.532 -0.567
out Out float64 [5] 2 2 -0.532 -0.567 2

example int32 1x1, pad_value 2, paddings 0 1 1 2
attr pad_value FLOAT 2.0
attr paddings INTS [0, 1, 1, 2]
in X int32 [1, 1] 9
out Out int32 [2, 4] 2 9 2*6

example float64 2x4, pad_value 2, paddings 1 2 2 0
attr pad_value FLOAT 2.0
attr paddings INTS [1, 2, 2, 0]
in X float64 [2, 4] -0.55 0.03 0.61 0.22 -0.36 0.8 -0.16 0.42
out Out float64 [5, 6] 2*8 -0.55 0.03 0.61 0.22 2 2 -0.36 0.8 -0.16 0.42 2*12

example float64 4x4, paddings 0 1 2 3
attr paddings INTS [0, 1, 2, 3]
in X float64 [4, 4] 0.938 0.12 0.295 0.821 0.353 0.178 0.645 0.762 0.412 0.879 0.587 0.529 0.236
  0.704 0.061 0.47
out Out float64 [5, 9] 0 0 0.938 0.12 0.295 0.821 0*5 0.353 0.178 0.645 0.762 0*5 0.412 0.879 0.587
  0.529 0*5 0.236 0.704 0.061 0.47 0*12

example float32 2, pad_value 2, paddings 2 1
attr pad_value FLOAT 2.0
attr paddings INTS [2, 1]
in X float32 [2] -0.532 -0.567
out Out float32 [5] 2 2 -0.532 -0.567 2

example int64 2, pad_value 2, paddings 2 1
attr pad_value FLOAT 2.0
attr paddings INTS [2, 1]
in X int64 [2] 0 0
out Out int64 [5] 2 2 0 0 2

example complex64 2, pad_value 2, paddings 2 1
attr pad_value FLOAT 2.0
attr paddings INTS [2, 1]
in X complex64 [2] -0.532+0.8j -0.567+0.3j
out Out complex64 [5] 2+0j 2+0j -0.532+0.8j -0.567+0.3j 2+0j

example bfloat16 2, pad_value 2, paddings 2 1
attr pad_value FLOAT 2.0
attr paddings INTS [2, 1]
in X bfloat16 [2] -0.53 -0.566
out Out bfloat16 [5] 2 2 -0.53 -0.566 2
)")

HEDDLE_EXAMPLES(pad_grad, R"(
example float64 3x2, paddings 1 2 2 0
attr paddings INTS [1, 2, 2, 0]
in Out@GRAD float64 [3, 2] 0.9 -0.1 -0.6 0.2 0.2 0.4
out X@GRAD float64 [0, 0]

example float64 5, paddings 2 1
attr paddings INTS [2, 1]
in Out@GRAD float64 [5] 0.5 0.2 0.9 -0.7 0.6
out X@GRAD float64 [2] 0.9 -0.7

example float64 3x4x3x2
attr paddings INTS [1, 0, 1, 0, 1, 0, 1, 0]
in Out@GRAD float64 [3, 4, 3, 2] -0.1 -0.7 -0.7 0.7 0.2 -0.1 0.6 0.6 -0.4 -0.6 -0.2 0.9 0.4 0.2 0.3
  -1 -0.3 -0.3 -0 0.8 0.5 0.3 -0.2 0.2 0.5 0.2 -0.8 -0.2 0.2 -0.8 -0.2 -0.9 0.2 -0.7 -0.3 -0.2 -0.5
  0.5 0.1 -0.9 0.5 -0.8 0.4 0.2 0.2 0.7 0.1 -0.8 0.5 0.1 -0.3 -0.1 -0.6 -0.6 -0.1 -0.3 0.6 -0.7 0.6
  -0.6 0.1 -0.8 0.4 -0.9 -0.4 0.8 -0.4 -0.6 -0.9 -0.9 0.7 1
out X@GRAD float64 [2, 3, 2, 1] -0.7 -0.2 -0.9 -0.8 0.7 -0.8 -0.7 -0.6 -0.9 0.8 -0.9 1

example float32 3x2, paddings 1 2 2 0
attr paddings INTS [1, 2, 2, 0]
in Out@GRAD float32 [3, 2] 0.9 -0.1 -0.6 0.2 0.2 0.4
out X@GRAD float32 [0, 0]
)")
