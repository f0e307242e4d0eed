// pad_constant_like: pads Y to the shape of X with a constant.
#include "core/shapes.h"
#include "kernels/strided/index_pad.h"

namespace heddle {
namespace {

// Y padded at the ends to the shape `large`.
Status PaddingTo(const Shape& y, const Shape& large, Padding* pad) {
  bool fits = y.rank() == large.rank();
  pad->rank = y.rank();
  for (int i = 0; fits && i < y.rank(); ++i) {
    pad->after[i] = large[i] - y[i];
    fits = y[i] < 0 || large[i] < 0 || pad->after[i] >= 0;
  }
  if (fits) return Status::Ok();
  return InvalidArgument("'Y' of shape ", y.ToString(), " cannot be padded to ", large.ToString());
}

Status LikeShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  const Shape& y = ctx.InShape("Y");
  if (!x.known_rank() || !y.known_rank()) return ctx.Defer();
  Padding pad;
  HEDDLE_RETURN_IF_ERROR(PaddingTo(y, x, &pad));
  ctx.SetOut("Out", x, ctx.InDType("Y"));
  return Status::Ok();
}

Status PadLike(KernelContext& ctx) {
  const Tensor& y = ctx.In("Y");
  Tensor& out = ctx.Out("Out");
  Padding pad;
  HEDDLE_RETURN_IF_ERROR(PaddingTo(y.shape(), out.shape(), &pad));
  return RunPad(ctx, y, pad, PadMode::kConstant, ctx.Float("pad_value"), out);
}

Status PadLikeGrad(KernelContext& ctx) {
  const Tensor& grad = ctx.In("Out@GRAD");
  Tensor& out = ctx.Out("Y@GRAD");
  Padding pad;
  HEDDLE_RETURN_IF_ERROR(PaddingTo(out.shape(), grad.shape(), &pad));
  return RunPadGrad(ctx, grad, pad, PadMode::kConstant, out);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(pad_constant_like) {
  op.Doc("Y with pad_value behind it, as large as X.")
      .Input("X", kNoBuffer)
      .Input("Y")
      .Output("Out")
      .Attr("pad_value", 0.0)
      .KernelKey("Y")
      .InferShape(LikeShape)
      .AnyKernel(PadLike);
}

HEDDLE_OP(pad_constant_like_grad) {
  op.Input("Out@GRAD")
      .Input("Y", kNoBuffer)
      .Output("Y@GRAD")
      .InferShape(GradLikeInputs)
      .AnyKernel(PadLikeGrad);
}

HEDDLE_EXAMPLES(pad_constant_like, R"(
example float32
attr pad_value FLOAT 2.0
in X float32 [3, 4] 0.3 -0.9 -0.65 0.37 0.03 0.85 0.23 0.84 -0.46 0.75 -0.38 -0.34
in Y float32 [2, 3] 6 6.8 4.5 -6.4 2.7 3.1
from pad X=Y -> Out=Out
attr paddings INTS [0, 1, 0, 1]
attr pad_value FLOAT 2
out Out float32 [3, 4] 6 6.8 4.5 2 -6.4 2.7 3.1 2*5

example int64
attr pad_value FLOAT 2.0
in X int64 [3, 4] 0*12
in Y int64 [2, 3] -6 -1 0 3 -3 3
from pad X=Y -> Out=Out
attr paddings INTS [0, 1, 0, 1]
attr pad_value FLOAT 2
out Out int64 [3, 4] -6 -1 0 2 3 -3 3 2*5
)")

HEDDLE_EXAMPLES(pad_constant_like_grad, R"(
example float32
in Y float32 [2, 3] 0.91 0.15 0.49 0.47 -0.46 -0.31
in Out@GRAD float32 [3, 4] -0.5 0.3 -0.71 0.72 -0.49 0.76 -0.97 -0.24 0.1 -0.67 0.8 -0.57
from slice Input=Out@GRAD -> Out=Y@GRAD
attr axes INTS [0, 1]
attr starts INTS [0, 0]
attr ends INTS [2, 3]
out Y@GRAD float32 [2, 3] -0.5 0.3 -0.71 -0.49 0.76 -0.97

example float64
in Y float64 [2, 3] 0.47 0.35 0.42 0.65 0.09 -0.72
in Out@GRAD float64 [3, 4] 0.37 -0.86 0.34 0.63 0.28 -0.8 0.71 0.55 -0.12 0.86 -0.26 0.38
from slice Input=Out@GRAD -> Out=Y@GRAD
attr axes INTS [0, 1]
attr starts INTS [0, 0]
attr ends INTS [2, 3]
out Y@GRAD float64 [2, 3] 0.37 -0.86 0.34 0.28 -0.8 0.71
)")
