// im2sequence: windows of images as the rows of sequences.
#include "core/shapes.h"
#include "kernels/shape/window_args.h"
#include "kernels/strided/index_patches.h"

namespace heddle {
namespace {

// im2sequence: every window one row, the windows of an image one sequence.
Status SequenceOf(const OpContext& ctx, const Shape& x, Patches* p) {
  if (x.rank() != 4)
    return InvalidArgument("'X' must be an image [n, c, h, w], not of shape ", x.ToString());
  p->n = x[0];
  p->c = x[1];
  p->h = x[2];
  p->w = x[3];
  HEDDLE_RETURN_IF_ERROR(OneOrTwo(ctx, "kernels", &p->k_h, &p->k_w));
  HEDDLE_RETURN_IF_ERROR(OneOrTwo(ctx, "strides", &p->stride_h, &p->stride_w));
  const Ints& pads = ctx.IntList("paddings");
  if (pads.size() != 4) return InvalidArgument("'paddings' must have 4 values");
  p->top = pads[0];
  p->left = pads[1];
  p->bottom = pads[2];
  p->right = pads[3];
  HEDDLE_RETURN_IF_ERROR(CountWindows(p));
  p->j_step = 1;
  p->i_step = p->k_w;
  p->c_step = p->k_h * p->k_w;
  p->x_step = p->c_step * p->c;
  p->y_step = p->x_step * p->out_w;
  p->n_step = p->y_step * p->out_h;
  return Status::Ok();
}

// Allocates by itself: the result has sequence offsets, which a planned shape does not carry.
Status Sequence(KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  if (ctx.InOpt("Y") != nullptr) return Unimplemented("im2sequence with real image sizes in 'Y'");
  Patches p;
  HEDDLE_RETURN_IF_ERROR(SequenceOf(ctx, x.shape(), &p));
  const int64_t windows = p.out_h * p.out_w;
  Tensor& out = ctx.Alloc("Out", x.dtype(), Shape{p.n * windows, p.x_step});
  LoD lod(1);
  for (int64_t i = 0; i <= p.n; ++i) lod[0].push_back(static_cast<size_t>(i * windows));
  out.set_lod(std::move(lod));
  return TakePatches(ctx, p, x, out);
}

Status SequenceGrad(KernelContext& ctx) {
  Tensor& out = ctx.Out("X@GRAD");
  Patches p;
  HEDDLE_RETURN_IF_ERROR(SequenceOf(ctx, out.shape(), &p));
  return AddPatches(ctx, p, ctx.In("Out@GRAD"), out);
}

OpDef& SequenceAttrs(OpDef& op) {
  return op.Attr("kernels", Ints{}).Attr("strides", Ints{1, 1}).Attr("paddings", Ints{0, 0, 0, 0});
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(im2sequence) {
  op.Doc("Every window of an image as a row, those of one image as a sequence.")
      .Input("X")
      .Input("Y", kOptional)
      .Output("Out");
  SequenceAttrs(op).AnyKernel(Sequence);
}

HEDDLE_OP(im2sequence_grad) {
  op.Input("Out@GRAD").Input("X", kNoBuffer).Input("Y", kOptional | kNoBuffer).Output("X@GRAD");
  SequenceAttrs(op).InferShape(GradLikeInputs).AnyKernel(SequenceGrad);
}

HEDDLE_EXAMPLES(im2sequence, R"(
example float32 2x1x4x3, kernels 2 1, paddings 2 0 2 0, strides 2 1
attr kernels INTS [2, 1]
attr paddings INTS [2, 0, 2, 0]
attr strides INTS [2, 1]
in X float32 [2, 1, 4, 3] 0.32 0.925 0.249 0.356 0.961 0.854 0.213 0.747 0.783 0.712 0.641 0.498
  0.676 0.285 0.534 0.569 0.463 0.427 0.605 0.89 0.178 0.142 0.391 0.819
out Out float32 [24, 2] lod [[0, 12, 24]] 0*6 0.32 0.356 0.925 0.961 0.249 0.854 0.213 0.712 0.747
  0.641 0.783 0.498 0*12 0.676 0.569 0.285 0.463 0.534 0.427 0.605 0.142 0.89 0.391 0.178 0.819 0*6
)")

HEDDLE_EXAMPLES(im2sequence_grad, R"(
example float32 24x2, kernels 2 1, paddings 2 0 2 0, strides 2 1
attr kernels INTS [2, 1]
attr paddings INTS [2, 0, 2, 0]
attr strides INTS [2, 1]
in Out@GRAD float32 [24, 2] lod [[0, 12, 24]] 0.6 -0.1 0.3 0.8 0.3 0.8 0.4 0.3 -0.8 -0.9 -0.6 -0.5
  -0.7 0.7 -0.4 0.6 -0.5 -0.1 -0.7 0.8 0.7 0.7 0.4 -0.3 -0.6 -0.3 0.7 0 -0.7 -0.7 1 0.9 -0.9 -0.7
  0.6 0.4 -0.1 0.8 -0.8 0.8 -0.8 0.2 0.6 -0.7 0.9 0.4 -0.8 -0.3
in X float32 [2, 1, 4, 3] 0.531 0.46 0.138 0.853 0.496 0.603 0.71 0.96 0.353 0.245 0.567 0.317 0.174
  0.746 0.424 0.281 0.674 0.21 0.817 0.638 0.924 0.889 0.388 0.781
out X@GRAD float32 [2, 1, 4, 3] 0.4 -0.8 -0.6 0.3 -0.9 -0.5 -0.7 -0.4 -0.5 0.7 0.6 -0.1 1 -0.9 0.6
  0.9 -0.7 0.4 -0.1 -0.8 -0.8 0.8 0.8 0.2
)")
