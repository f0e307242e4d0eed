// unfold and fold: windows of images as columns, and the columns added back into images.
#include "core/shapes.h"
#include "kernels/shape/window_args.h"
#include "kernels/strided/index_patches.h"

namespace heddle {
namespace {

Status Geometry(const OpContext& ctx, int64_t n, int64_t c, int64_t h, int64_t w, Patches* p) {
  p->n = n;
  p->c = c;
  p->h = h;
  p->w = w;
  HEDDLE_RETURN_IF_ERROR(OneOrTwo(ctx, "kernel_sizes", &p->k_h, &p->k_w));
  HEDDLE_RETURN_IF_ERROR(OneOrTwo(ctx, "strides", &p->stride_h, &p->stride_w));
  HEDDLE_RETURN_IF_ERROR(OneOrTwo(ctx, "dilations", &p->dilation_h, &p->dilation_w));
  const Ints& pads = ctx.IntList("paddings");
  if (pads.size() != 4 && pads.size() != 2 && pads.size() != 1)
    return InvalidArgument("'paddings' has ", pads.size(), " values; expected 1, 2 or 4");
  p->top = pads[0];
  p->left = pads.size() == 1 ? pads[0] : pads[1];
  p->bottom = pads.size() == 4 ? pads[2] : p->top;
  p->right = pads.size() == 4 ? pads[3] : p->left;
  HEDDLE_RETURN_IF_ERROR(CountWindows(p));
  // [n, c * k_h * k_w, windows]
  p->x_step = 1;
  p->y_step = p->out_w;
  p->j_step = p->out_h * p->out_w;
  p->i_step = p->j_step * p->k_w;
  p->c_step = p->i_step * p->k_h;
  p->n_step = p->c_step * c;
  return Status::Ok();
}

Status OfImage(const OpContext& ctx, const Shape& x, Patches* p) {
  if (x.rank() != 4)
    return InvalidArgument("an image [n, c, h, w] is expected, not the shape ", x.ToString());
  return Geometry(ctx, x[0], x[1], x[2], x[3], p);
}

Status UnfoldShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  if (!x.is_static()) return ctx.Defer();
  Patches p;
  HEDDLE_RETURN_IF_ERROR(OfImage(ctx, x, &p));
  ctx.SetOut("Y", Shape{p.n, p.c * p.k_h * p.k_w, p.out_h * p.out_w}, ctx.InDType("X"));
  return Status::Ok();
}

Status Unfold(KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  Patches p;
  HEDDLE_RETURN_IF_ERROR(OfImage(ctx, x.shape(), &p));
  return TakePatches(ctx, p, x, ctx.Out("Y"));
}

Status UnfoldGrad(KernelContext& ctx) {
  Tensor& out = ctx.Out("X@GRAD");
  Patches p;
  HEDDLE_RETURN_IF_ERROR(OfImage(ctx, out.shape(), &p));
  return AddPatches(ctx, p, ctx.In("Y@GRAD"), out);
}

// X [n, c * k_h * k_w, windows] (or without n) to an image of `output_sizes`.
Status FoldShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  if (!x.is_static()) return ctx.Defer();
  Patches p;
  int64_t h = 0, w = 0;
  HEDDLE_RETURN_IF_ERROR(OneOrTwo(ctx, "output_sizes", &h, &w));
  HEDDLE_RETURN_IF_ERROR(Geometry(ctx, 1, 1, h, w, &p));
  const int64_t area = p.k_h * p.k_w;
  if ((x.rank() != 3 && x.rank() != 2) || x.dim(-2) % area != 0 || x.dim(-1) != p.out_h * p.out_w)
    return InvalidArgument("'X' of shape ", x.ToString(), " is not [n, c * ", area, ", ",
                           p.out_h * p.out_w, "]");
  Shape out{x.dim(-2) / area, h, w};
  if (x.rank() == 3) out.insert(0, x[0]);
  ctx.SetOut("Y", out, ctx.InDType("X"));
  return Status::Ok();
}

Status OfOutput(const OpContext& ctx, const Shape& image, Patches* p) {
  if (image.rank() < 3) return InvalidArgument("an image of at least three dimensions is expected");
  return Geometry(ctx, image.rank() == 4 ? image[0] : 1, image.dim(-3), image.dim(-2),
                  image.dim(-1), p);
}

Status Fold(KernelContext& ctx) {
  Tensor& out = ctx.Out("Y");
  Patches p;
  HEDDLE_RETURN_IF_ERROR(OfOutput(ctx, out.shape(), &p));
  return AddPatches(ctx, p, ctx.In("X"), out);
}

Status FoldGrad(KernelContext& ctx) {
  const Tensor& grad = ctx.In("Y@GRAD");
  Patches p;
  HEDDLE_RETURN_IF_ERROR(OfOutput(ctx, grad.shape(), &p));
  return TakePatches(ctx, p, grad, ctx.Out("X@GRAD"));
}

OpDef& Attrs(OpDef& op) {
  return op.Attr("kernel_sizes", Ints{})
      .Attr("strides", Ints{1, 1})
      .Attr("paddings", Ints{0, 0, 0, 0})
      .Attr("dilations", Ints{1, 1});
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(unfold) {
  op.Doc("Every window of an image as a column.").Input("X").Output("Y");
  Attrs(op).InferShape(UnfoldShape).AnyKernel(Unfold);
}

HEDDLE_OP(unfold_grad) {
  op.Input("Y@GRAD").Input("X", kNoBuffer).Output("X@GRAD");
  Attrs(op).InferShape(GradLikeInputs).AnyKernel(UnfoldGrad);
}

HEDDLE_OP(fold) {
  op.Doc("Columns summed up at the places of the windows they stand for.")
      .Input("X")
      .Output("Y")
      .Attr("output_sizes", Ints{});
  Attrs(op).InferShape(FoldShape).AnyKernel(Fold);
}

HEDDLE_OP(fold_grad) {
  op.Input("Y@GRAD").Input("X", kNoBuffer).Output("X@GRAD").Attr("output_sizes", Ints{});
  Attrs(op).InferShape(GradLikeInputs).AnyKernel(FoldGrad);
}

HEDDLE_EXAMPLES(unfold, R"(
example float32 2x1x4x3, dilations 1 1, kernel_sizes 2 1, paddings 1 0 1 0, strides 1 1
attr dilations INTS [1, 1]
attr kernel_sizes INTS [2, 1]
attr paddings INTS [1, 0, 1, 0]
attr strides INTS [1, 1]
in X float32 [2, 1, 4, 3] -0.05 -0.2 -0.92 0.67 -0.13 0.11 0.35 0.91 -0.44 -0.68 0.03 -0.52 -0.84
  0.43 -0.28 -0.6 0.27 -0.76 0.59 0.19 0.83 0.75 -0.36 0.51
out Y float32 [2, 2, 15] 0 0 0 -0.05 -0.2 -0.92 0.67 -0.13 0.11 0.35 0.91 -0.44 -0.68 0.03 -0.52
  -0.05 -0.2 -0.92 0.67 -0.13 0.11 0.35 0.91 -0.44 -0.68 0.03 -0.52 0*6 -0.84 0.43 -0.28 -0.6 0.27
  -0.76 0.59 0.19 0.83 0.75 -0.36 0.51 -0.84 0.43 -0.28 -0.6 0.27 -0.76 0.59 0.19 0.83 0.75 -0.36
  0.51 0 0 0

example float64 2x1x4x3, dilations 1 1, kernel_sizes 2 1, paddings 1 0 1 0, strides 1 1
attr dilations INTS [1, 1]
attr kernel_sizes INTS [2, 1]
attr paddings INTS [1, 0, 1, 0]
attr strides INTS [1, 1]
in X float64 [2, 1, 4, 3] -0.05 -0.2 -0.92 0.67 -0.13 0.11 0.35 0.91 -0.44 -0.68 0.03 -0.52 -0.84
  0.43 -0.28 -0.6 0.27 -0.76 0.59 0.19 0.83 0.75 -0.36 0.51
out Y float64 [2, 2, 15] 0 0 0 -0.05 -0.2 -0.92 0.67 -0.13 0.11 0.35 0.91 -0.44 -0.68 0.03 -0.52
  -0.05 -0.2 -0.92 0.67 -0.13 0.11 0.35 0.91 -0.44 -0.68 0.03 -0.52 0*6 -0.84 0.43 -0.28 -0.6 0.27
  -0.76 0.59 0.19 0.83 0.75 -0.36 0.51 -0.84 0.43 -0.28 -0.6 0.27 -0.76 0.59 0.19 0.83 0.75 -0.36
  0.51 0 0 0
)")

HEDDLE_EXAMPLES(unfold_grad, R"(
example float64 2x2x15, dilations 1 1, kernel_sizes 2 1, paddings 1 0 1 0, strides 1 1
attr dilations INTS [1, 1]
attr kernel_sizes INTS [2, 1]
attr paddings INTS [1, 0, 1, 0]
attr strides INTS [1, 1]
in X float64 [2, 1, 4, 3] -0.05 -0.2 -0.92 0.67 -0.13 0.11 0.35 0.91 -0.44 -0.68 0.03 -0.52 -0.84
  0.43 -0.28 -0.6 0.27 -0.76 0.59 0.19 0.83 0.75 -0.36 0.51
in Y@GRAD float64 [2, 2, 15] -0 0.2 -0.4 -0.5 -0.3 0.8 -0.3 -1 0.9 0.5 0.2 -0.5 1 -0.1 0.5 -0.4 0.3
  -0.7 0.4 -0.3 0.4 0.3 0.1 -0 0.7 -0.9 0.6 -0.1 -0.5 0.2 0.7 1 0.2 -0.3 0.6 0.1 0.3 0.5 -0.8 -0.9
  0.3 0.7 0.8 0.6 0.5 -0.2 0.2 -0.4 0.2 0.9 -0.4 0.2 0.8 0.4 -0.1 -0.4 -0.6 0.8 1 0.6
out X@GRAD float64 [2, 1, 4, 3] -0.9 0 0.10000000000000009 0.10000000000000003 -1.3 1.3 0.8
  0.30000000000000004 -0.5 1.7 -1 1.1 -0.5 0.8 -0.30000000000000004 0.5 1.4 -1.2000000000000002 -0.7
  1.1 1.1 0.7000000000000001 0.19999999999999996 -0.09999999999999998

example float32 2x2x15, dilations 1 1, kernel_sizes 2 1, paddings 1 0 1 0, strides 1 1
attr dilations INTS [1, 1]
attr kernel_sizes INTS [2, 1]
attr paddings INTS [1, 0, 1, 0]
attr strides INTS [1, 1]
in X float32 [2, 1, 4, 3] -0.05 -0.2 -0.92 0.67 -0.13 0.11 0.35 0.91 -0.44 -0.68 0.03 -0.52 -0.84
  0.43 -0.28 -0.6 0.27 -0.76 0.59 0.19 0.83 0.75 -0.36 0.51
in Y@GRAD float32 [2, 2, 15] -0 0.2 -0.4 -0.5 -0.3 0.8 -0.3 -1 0.9 0.5 0.2 -0.5 1 -0.1 0.5 -0.4 0.3
  -0.7 0.4 -0.3 0.4 0.3 0.1 -0 0.7 -0.9 0.6 -0.1 -0.5 0.2 0.7 1 0.2 -0.3 0.6 0.1 0.3 0.5 -0.8 -0.9
  0.3 0.7 0.8 0.6 0.5 -0.2 0.2 -0.4 0.2 0.9 -0.4 0.2 0.8 0.4 -0.1 -0.4 -0.6 0.8 1 0.6
out X@GRAD float32 [2, 1, 4, 3] -0.9 0 0.100000024 0.099999994 -1.3 1.3 0.8 0.3 -0.5 1.7 -1 1.1 -0.5
  0.8 -0.3 0.5 1.4 -1.2 -0.7 1.1 1.1 0.7 0.20000002 -0.100000024
)")

HEDDLE_EXAMPLES(fold, R"(
example float32
attr output_sizes INTS [3, 3]
attr kernel_sizes INTS [2, 2]
attr strides INTS [1, 1]
attr paddings INTS [0, 0, 0, 0]
attr dilations INTS [1, 1]
in X float32 [1, 4, 4] -0.2 0.12 -0.66 -0.98 -0.18 -0.79 0.05 -0.08 -0.18 0.52 -0.96 0.23 0.3 0.44
  0.15 0.99
out Y float32 [1, 1, 3, 3] -0.2 -0.06000001 -0.79 -0.84000003 -0.110000014 0.36 -0.96 0.38 0.99
)")

HEDDLE_EXAMPLES(fold_grad, R"(
example float32
attr dilations INTS [1, 1]
attr kernel_sizes INTS [2, 2]
attr output_sizes INTS [3, 3]
attr paddings INTS [0, 0, 0, 0]
attr strides INTS [1, 1]
in X float64 [1, 4, 4] -0.2 0.12 -0.66 -0.98 -0.18 -0.79 0.05 -0.08 -0.18 0.52 -0.96 0.23 0.3 0.44
  0.15 0.99
in Y@GRAD float64 [1, 1, 3, 3] 0.3 0.9 0.9 -0.8 -0.5 0.7 0.1 0.4 0.9
out X@GRAD float64 [1, 4, 4] 0.3 0.9 -0.8 -0.5 0.9 0.9 -0.5 0.7 -0.8 -0.5 0.1 0.4 -0.5 0.7 0.4 0.9
)")
