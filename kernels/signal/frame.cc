// frame and overlap_add: a signal as overlapping frames, and frames summed up to a signal.
#include <algorithm>
#include <complex>

#include "core/shapes.h"
#include "core/threads/look_meter.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

// The signal is [outer, signal, inner]; frames add the dimensions (length, frames) for axis -1, in
// the order (frames, length) for axis 0.
struct Framing {
  bool front = false;  // axis 0
  int64_t outer = 1, inner = 1, signal = 0, length = 0, frames = 0, hop = 1;
  int64_t frame_step() const { return front ? length * inner : 1; }
  int64_t element_step() const { return front ? inner : frames; }
};

Status ReadAxis(const OpContext& ctx, const Shape& shape, int dims, Framing* f) {
  const int64_t axis = ctx.Int("axis");
  f->hop = ctx.Int("hop_length");
  f->front = axis == 0;
  if ((axis != 0 && axis != -1) || f->hop < 1 || shape.rank() < dims)
    return InvalidArgument("axis ", axis, " and hop_length ", f->hop,
                           " do not suit a tensor of shape ", shape.ToString(),
                           "; expected axis 0 or -1");
  if (f->front)
    f->inner = shape.Product(dims, shape.rank());
  else
    f->outer = shape.Product(0, shape.rank() - dims);
  return Status::Ok();
}

Status OfSignal(const OpContext& ctx, const Shape& x, int64_t length, Framing* f) {
  HEDDLE_RETURN_IF_ERROR(ReadAxis(ctx, x, 1, f));
  f->signal = f->front ? x[0] : x.dim(-1);
  f->length = length;
  if (length < 1 || length > f->signal)
    return InvalidArgument("frames of ", length, " do not fit a signal of ", f->signal);
  f->frames = 1 + (f->signal - length) / f->hop;
  return Status::Ok();
}

Status OfFrames(const OpContext& ctx, const Shape& x, Framing* f) {
  HEDDLE_RETURN_IF_ERROR(ReadAxis(ctx, x, 2, f));
  f->length = f->front ? x[1] : x.dim(-2);
  f->frames = f->front ? x[0] : x.dim(-1);
  f->signal = f->frames == 0 ? 0 : (f->frames - 1) * f->hop + f->length;
  return Status::Ok();
}

void Cut(const KernelContext& ctx, const Framing& f, const Tensor& x, Tensor& out) {
  const int64_t all = f.length * f.frames * f.inner;
  const CopyDim frames{f.frames, f.hop * f.inner, f.frame_step()};
  const CopyDim elements{f.length, f.inner, f.element_step()};
  const CopyDim dims[] = {{f.outer, f.signal * f.inner, all},
                          f.front ? frames : elements,
                          f.front ? elements : frames,
                          {f.inner, 1, 1}};
  StridedCopy(SizeOf(x.dtype()), dims).Run(ctx, x.raw(), out.mutable_raw());
}

Status Sum(const KernelContext& ctx, const Framing& f, const Tensor& x, Tensor& out) {
  const int64_t all = f.length * f.frames * f.inner;
  ZeroBytes(ctx, out.mutable_raw(), out.bytes());
  const bool known = VisitDType<float, double, int32_t, int64_t, float16, std::complex<float>,
                                std::complex<double>>(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = ComputeType<T>;
    ctx.ParallelFor(
        f.outer, std::max<int64_t>(1, 65536 / std::max<int64_t>(1, all)),
        [&](int64_t begin, int64_t end) {
          LookMeter meter;
          for (int64_t o = begin; o < end; ++o)
            for (int64_t k = 0; k < f.frames; ++k)
              for (int64_t l = 0; l < f.length; ++l) {
                meter.Did(4 + f.inner);
                const T* from = x.data<T>() + o * all + k * f.frame_step() + l * f.element_step();
                T* to = out.mutable_data<T>() + (o * f.signal + k * f.hop + l) * f.inner;
                for (int64_t i = 0; i < f.inner; ++i)
                  to[i] = static_cast<T>(static_cast<C>(to[i]) + static_cast<C>(from[i]));
              }
        });
  });
  return known ? Status::Ok() : Unimplemented("no sums of ", Name(x.dtype()), " tensors");
}

Status FrameShape(ShapeContext& ctx) {
  Shape out = ctx.InShape("X");
  if (!out.is_static()) return ctx.Defer();
  Framing f;
  HEDDLE_RETURN_IF_ERROR(OfSignal(ctx, out, ctx.Int("frame_length"), &f));
  if (out.rank() == Shape::kMaxRank) return InvalidArgument("'X' has too many dimensions");
  out.erase(f.front ? 0 : out.rank() - 1);
  out.insert(f.front ? 0 : out.rank(), f.front ? f.frames : f.length);
  out.insert(f.front ? 1 : out.rank(), f.front ? f.length : f.frames);
  ctx.SetOut("Out", out, ctx.InDType("X"));
  return Status::Ok();
}

Status OverlapShape(ShapeContext& ctx) {
  Shape out = ctx.InShape("X");
  if (!out.is_static()) return ctx.Defer();
  Framing f;
  HEDDLE_RETURN_IF_ERROR(OfFrames(ctx, out, &f));
  out.erase(f.front ? 0 : out.rank() - 1);
  out[f.front ? 0 : out.rank() - 1] = f.signal;
  ctx.SetOut("Out", out, ctx.InDType("X"));
  return Status::Ok();
}

Status CheckPair(const Framing& f, const Tensor& signal, const Tensor& frames) {
  if (signal.numel() == f.outer * f.signal * f.inner &&
      frames.numel() == f.outer * f.frames * f.length * f.inner && signal.dtype() == frames.dtype())
    return Status::Ok();
  return InvalidArgument("frames of shape ", frames.shape().ToString(),
                         " do not fit a signal of shape ", signal.shape().ToString());
}

Status Frame(KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  Framing f;
  HEDDLE_RETURN_IF_ERROR(OfSignal(ctx, x.shape(), ctx.Int("frame_length"), &f));
  Cut(ctx, f, x, ctx.Out("Out"));
  return Status::Ok();
}

Status FrameGrad(KernelContext& ctx) {
  const Tensor& grad = ctx.In("Out@GRAD");
  Tensor& out = ctx.Out("X@GRAD");
  Framing f;
  HEDDLE_RETURN_IF_ERROR(OfSignal(ctx, out.shape(), ctx.Int("frame_length"), &f));
  HEDDLE_RETURN_IF_ERROR(CheckPair(f, out, grad));
  return Sum(ctx, f, grad, out);
}

Status OverlapAdd(KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  Framing f;
  HEDDLE_RETURN_IF_ERROR(OfFrames(ctx, x.shape(), &f));
  return Sum(ctx, f, x, ctx.Out("Out"));
}

Status OverlapAddGrad(KernelContext& ctx) {
  const Tensor& grad = ctx.In("Out@GRAD");
  Tensor& out = ctx.Out("X@GRAD");
  Framing f;
  HEDDLE_RETURN_IF_ERROR(OfFrames(ctx, out.shape(), &f));
  HEDDLE_RETURN_IF_ERROR(CheckPair(f, grad, out));
  Cut(ctx, f, grad, out);
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(frame) {
  op.Doc("Frames of frame_length elements of a signal, hop_length apart.")
      .Input("X")
      .Output("Out")
      .Attr("frame_length", 1)
      .Attr("hop_length", 1)
      .Attr("axis", -1)
      .InferShape(FrameShape)
      .AnyKernel(Frame);
}
HEDDLE_OP(frame_grad) {
  op.Input("Out@GRAD")
      .Input("X", kNoBuffer)
      .Output("X@GRAD")
      .Attr("frame_length", 1)
      .Attr("hop_length", 1)
      .Attr("axis", -1)
      .InferShape(GradLikeInputs)
      .AnyKernel(FrameGrad);
}
HEDDLE_OP(overlap_add) {
  op.Doc("The signal that overlapping frames, hop_length apart, add up to.")
      .Input("X")
      .Output("Out")
      .Attr("hop_length", 1)
      .Attr("axis", -1)
      .InferShape(OverlapShape)
      .AnyKernel(OverlapAdd);
}
HEDDLE_OP(overlap_add_grad) {
  op.Input("Out@GRAD")
      .Input("X", kNoBuffer)
      .Output("X@GRAD")
      .Attr("hop_length", 1)
      .Attr("axis", -1)
      .InferShape(GradLikeInputs)
      .AnyKernel(OverlapAddGrad);
}
