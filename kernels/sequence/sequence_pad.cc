// sequence_pad and sequence_unpad: between packed sequences and a padded [batch, time, ...] tensor.
#include "kernels/base/shape_checks.h"
#include "kernels/sequence/sequence.h"

namespace heddle {
namespace {

Status Pad(KernelContext& ctx) {
  const Tensor x = ctx.In("X");
  const Tensor pad = ctx.In("PadValue");
  HEDDLE_ASSIGN_OR_RETURN(const Offsets* const offsets, OffsetsOf(x, "X"));
  const int64_t count = SequenceCount(*offsets);
  int64_t longest = 0;
  for (int64_t i = 0; i < count; ++i) longest = std::max(longest, Length(*offsets, i));
  const int64_t given = ctx.Int("padded_length"), time = given == -1 ? longest : given;
  if (time < longest)
    return InvalidArgument("padded_length ", given, " is less than the longest sequence, ",
                           longest);
  if (pad.dtype() != x.dtype() || (pad.numel() != 1 && pad.numel() != RowSize(x)))
    return InvalidArgument("PadValue ", pad.shape().ToString(),
                           " must be one value or a row of X, of X's dtype");
  Shape shape{count, time};
  for (int i = 1; i < x.rank(); ++i) shape.push_back(x.dim(i));
  Tensor& out = ctx.Alloc("Out", x.dtype(), shape);
  out.ClearLod();
  const size_t row = RowBytes(x), item = SizeOf(x.dtype());
  std::byte* to = out.mutable_data<std::byte>();
  for (int64_t i = 0; i < count; ++i) {
    const int64_t length = Length(*offsets, i);
    const size_t used = static_cast<size_t>(length) * row;
    if (used > 0) std::memcpy(to, RowOf(x, Begin(*offsets, i)), used);
    to += used;
    for (int64_t k = length; k < time; ++k, to += row) {
      if (pad.numel() == 1)
        for (size_t b = 0; b < row; b += item) std::memcpy(to + b, pad.raw(), item);
      else if (row > 0)
        std::memcpy(to, pad.raw(), row);
    }
  }
  Tensor& lengths = ctx.Alloc("Length", DType::kI64, Shape{count});
  for (int64_t i = 0; i < count; ++i) lengths.mutable_data<int64_t>()[i] = Length(*offsets, i);
  return Status::Ok();
}

Status PadGrad(KernelContext& ctx) {
  const Tensor &x = ctx.In("X"), &dout = ctx.In("Out@GRAD");
  HEDDLE_ASSIGN_OR_RETURN(const Offsets* const offsets, OffsetsOf(x, "X"));
  const int64_t count = SequenceCount(*offsets);
  if (dout.rank() < 2 || dout.dim(0) != count || dout.numel() != count * dout.dim(1) * RowSize(x))
    return InvalidArgument("Out@GRAD ", dout.shape().ToString(), " does not fit X");
  Tensor& dx = ctx.Out("X@GRAD");
  const size_t row = RowBytes(x);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t length = Length(*offsets, i);
    if (length > dout.dim(1)) return InvalidArgument("Out@GRAD is shorter than sequence ", i);
    if (length > 0 && row > 0)
      std::memcpy(MutableRow(dx, Begin(*offsets, i)),
                  dout.data<std::byte>() + static_cast<size_t>(i * dout.dim(1)) * row,
                  static_cast<size_t>(length) * row);
  }
  return Status::Ok();
}

// Lengths, checked against X [batch, time, ...].
Result<Offsets> ReadLengths(KernelContext& ctx, const Tensor& x) {
  const Labels lengths(ctx, ctx.In("Length"));
  if (x.rank() < 2 || ctx.In("Length").numel() != x.dim(0))
    return InvalidArgument("Length must have one element per row of X ", x.shape().ToString());
  Offsets offsets{0};
  for (int64_t i = 0; i < x.dim(0); ++i) {
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
      std::memcpy(MutableRow(out, Begin(offsets, i)), RowOf(x, i),
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
  for (int64_t i = 0; i < x.dim(0); ++i) {
    const int64_t length = Length(offsets, i);
    if (length > x.dim(1) || static_cast<size_t>(length) * row > RowBytes(x))
      return InvalidArgument("sequence ", i, " of Out@GRAD is longer than X");
    if (length > 0 && row > 0)
      std::memcpy(MutableRow(dx, i), RowOf(dout, Begin(offsets, i)),
                  static_cast<size_t>(length) * row);
  }
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(sequence_pad) {
  op.Doc("packed sequences as [batch, time, ...], filled up with PadValue")
      .Input("X")
      .Input("PadValue")
      .Output("Out")
      .Output("Length")
      .Attr("padded_length", -1)
      .AnyKernel(Pad);
}

HEDDLE_OP(sequence_pad_grad) {
  op.Input("X", kNoBuffer)
      .Input("Out@GRAD")
      .Output("X@GRAD")
      .Attr("padded_length", -1)
      .InferShape(SequenceGradLikeX)
      .AnyKernel(PadGrad);
}

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
