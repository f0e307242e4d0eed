// unfold and fold: windows of images as columns, and the columns added back into images.
#include "core/shapes.h"
#include "kernels/rearrange/window_args.h"
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
