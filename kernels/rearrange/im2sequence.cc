// im2sequence: windows of images as the rows of sequences.
#include <utility>
#include <vector>

#include "core/interrupts.h"
#include "core/shapes.h"
#include "kernels/base/convert.h"
#include "kernels/rearrange/window_args.h"
#include "kernels/strided/index_patches.h"

namespace heddle {
namespace {

// Every window one row.
Status SetWindows(Patches* p) {
  HEDDLE_RETURN_IF_ERROR(CountWindows(p));
  p->j_step = 1;
  p->i_step = p->k_w;
  p->c_step = p->k_h * p->k_w;
  p->x_step = p->c_step * p->c;
  p->y_step = p->x_step * p->out_w;
  p->n_step = p->y_step * p->out_h;
  return Status::Ok();
}

// im2sequence: the windows of an image are one sequence.
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
  return SetWindows(p);
}

// The windows of each image where Y says how large the images really are, before they were made
// smaller by out_stride: those whose first corner lies in that part.
Result<std::vector<Patches>> RealWindows(const KernelContext& ctx, const Patches& all,
                                         const Tensor& sizes) {
  int64_t stride[2];
  HEDDLE_RETURN_IF_ERROR(OneOrTwo(ctx, "out_stride", &stride[0], &stride[1]));
  if (stride[0] < 1 || stride[1] < 1)
    return InvalidArgument("'out_stride' holds ", stride[0], " and ", stride[1],
                           "; it must be positive");
  if (sizes.numel() != 2 * all.n || sizes.dtype() != DType::kF32)
    return InvalidArgument("'Y' is ", Name(sizes.dtype()), " ", sizes.shape().ToString(),
                           "; float32 [", all.n,
                           ", 2], the height and width of each image, is expected");
  std::vector<Patches> windows;
  for (const int64_t i : Watched(all.n)) {
    Patches p = all;
    p.n = 1;
    for (int d = 0; d < 2; ++d) {
      int64_t* const size = d == 0 ? &p.h : &p.w;
      const auto real = ConvertTo<int64_t>(sizes.data<float>()[2 * i + d]);
      if (real < 1 || real > *size * stride[d])
        return OutOfRange("'Y' says that dimension ", d, " of image ", i, " has ", real,
                          " elements; X has ", *size, " with out_stride ", stride[d]);
      *size = (real + stride[d] - 1) / stride[d];
    }
    HEDDLE_RETURN_IF_ERROR(SetWindows(&p));
    p.h = all.h;  // what lies beyond the real size is read all the same
    p.w = all.w;
    windows.push_back(p);
  }
  return windows;
}

// Rows [row, row + count) of `t`.
Tensor RowsOf(const Tensor& t, int64_t row, int64_t count) {
  Shape shape = t.shape();
  shape[0] = count;
  const auto offset = static_cast<size_t>(row * t.shape().Product(1, t.rank())) * SizeOf(t.dtype());
  auto* data = static_cast<std::byte*>(const_cast<void*>(t.raw())) + offset;
  return Tensor::Wrap(data, t.dtype(), shape);
}

Status SequenceOfReal(KernelContext& ctx, const Patches& all, const Tensor& x,
                      const Tensor& sizes) {
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<Patches> windows, RealWindows(ctx, all, sizes));
  LoD lod(1, {0});
  for (const Patches& p : windows)
    lod[0].push_back(lod[0].back() + static_cast<size_t>(p.out_h * p.out_w));
  const auto rows = static_cast<int64_t>(lod[0].back());
  Tensor& out = ctx.Alloc("Out", x.dtype(), Shape{rows, all.x_step});
  for (size_t i = 0; i < windows.size(); ++i) {
    const auto begin = static_cast<int64_t>(lod[0][i]), end = static_cast<int64_t>(lod[0][i + 1]);
    Tensor part = RowsOf(out, begin, end - begin);
    HEDDLE_RETURN_IF_ERROR(
        TakePatches(ctx, windows[i], RowsOf(x, static_cast<int64_t>(i), 1), part));
  }
  out.set_lod(std::move(lod));
  return Status::Ok();
}

// Allocates by itself: the result has sequence offsets, which a planned shape does not carry.
Status Sequence(KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  Patches p;
  HEDDLE_RETURN_IF_ERROR(SequenceOf(ctx, x.shape(), &p));
  // A single image is taken whole, as in Paddle.
  if (const Tensor* sizes = ctx.InOpt("Y"); sizes != nullptr && p.n > 1)
    return SequenceOfReal(ctx, p, x, *sizes);
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
  return op.Attr("kernels", Ints{})
      .Attr("strides", Ints{1, 1})
      .Attr("paddings", Ints{0, 0, 0, 0})
      .Attr("out_stride", Ints{1, 1});
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
