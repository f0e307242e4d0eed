// sequence_unpad: a padded [batch, time, ...] tensor as packed sequences.
#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/base/shape_checks.h"
#include "kernels/sequence/sequence.h"

namespace heddle {
namespace {

// Lengths, checked against X [batch, time, ...].
Result<Offsets> ReadLengths(KernelContext& ctx, const Tensor& x) {
  const Labels lengths(ctx, ctx.In("Length"));
  if (x.rank() < 2 || ctx.In("Length").numel() != x.dim(0))
    return InvalidArgument("Length must have one element per row of X ", x.shape().ToString());
  Offsets offsets{0};
  for (const int64_t i : Watched(x.dim(0))) {
    if (lengths[i] < 0 || lengths[i] > x.dim(1))
      return OutOfRange("length ", lengths[i], " is not in [0, ", x.dim(1), "]");
    offsets.push_back(offsets.back() + static_cast<size_t>(lengths[i]));
  }
  return offsets;
}

Status Unpad(KernelContext& ctx) {
  const Tensor x = ctx.In("X");
  HEDDLE_ASSIGN_OR_RETURN(Offsets offsets, ReadLengths(ctx, x));
  Shape shape{static_cast<int64_t>(offsets.back())};
  for (int i = 2; i < x.rank(); ++i) shape.push_back(x.dim(i));
  if (x.rank() == 2) shape.push_back(1);
  Tensor& out = ctx.Alloc("Out", x.dtype(), shape);
  const size_t row = RowBytes(out);
  for (int64_t i = 0; i < x.dim(0); ++i)
    if (const int64_t length = Length(offsets, i); length > 0 && row > 0)
      WatchedMemcpy(MutableRow(out, Begin(offsets, i)), RowOf(x, i),
                    static_cast<size_t>(length) * row);
  out.set_lod({std::move(offsets)});
  return Status::Ok();
}

Status UnpadGrad(KernelContext& ctx) {
  const Tensor &x = ctx.In("X"), &dout = ctx.In("Out@GRAD");
  HEDDLE_ASSIGN_OR_RETURN(const Offsets offsets, [&]() -> Result<Offsets> {
    if (ctx.InOpt("Length") != nullptr) return ReadLengths(ctx, x);
    HEDDLE_ASSIGN_OR_RETURN(const Offsets* const own, OffsetsOf(dout, "Out@GRAD"));
    return *own;
  }());
  if (SequenceCount(offsets) != x.dim(0) || x.rank() < 2 ||
      dout.dim(0) != static_cast<int64_t>(offsets.back()))
    return InvalidArgument("Out@GRAD ", dout.shape().ToString(), " does not fit X");
  Tensor& dx = ctx.Out("X@GRAD");
  ZeroAll(dx);
  const size_t row = RowBytes(dout);
  for (const int64_t i : Watched(x.dim(0))) {
    const int64_t length = Length(offsets, i);
    if (length > x.dim(1) || static_cast<size_t>(length) * row > RowBytes(x))
      return InvalidArgument("sequence ", i, " of Out@GRAD is longer than X");
    if (length > 0 && row > 0)
      WatchedMemcpy(MutableRow(dx, i), RowOf(dout, Begin(offsets, i)),
                    static_cast<size_t>(length) * row);
  }
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(sequence_unpad) {
  op.Doc("the first Length[i] steps of each row of X, packed")
      .Input("X")
      .Input("Length")
      .Output("Out")
      .AnyKernel(Unpad);
}

HEDDLE_OP(sequence_unpad_grad) {
  op.Input("X", kNoBuffer)
      .Input("Length", kOptional)
      .Input("Out@GRAD")
      .Output("X@GRAD")
      .InferShape(SequenceGradLikeX)
      .AnyKernel(UnpadGrad);
}
