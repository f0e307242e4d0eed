// sequence_pad: packed sequences as a padded [batch, time, ...] tensor.
#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
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
  for (const auto part : Stretches(count))
    for (int64_t i = part.begin; i < part.end; ++i)
      longest = std::max(longest, Length(*offsets, i));
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
  for (const int64_t i : Watched(count)) {
    const int64_t length = Length(*offsets, i);
    const size_t used = static_cast<size_t>(length) * row;
    if (used > 0) WatchedMemcpy(to, RowOf(x, Begin(*offsets, i)), used);
    to += used;
    for (int64_t k = length; k < time; ++k, to += row) {
      if (pad.numel() == 1)
        for (size_t b = 0; b < row; b += item) std::memcpy(to + b, pad.raw(), item);
      else if (row > 0)
        std::memcpy(to, pad.raw(), row);
    }
  }
  Tensor& lengths = ctx.Alloc("Length", DType::kI64, Shape{count});
  for (const auto part : Stretches(count))
    for (int64_t i = part.begin; i < part.end; ++i)
      lengths.mutable_data<int64_t>()[i] = Length(*offsets, i);
  return Status::Ok();
}

Status PadGrad(KernelContext& ctx) {
  const Tensor &x = ctx.In("X"), &dout = ctx.In("Out@GRAD");
  HEDDLE_ASSIGN_OR_RETURN(const Offsets* const offsets, OffsetsOf(x, "X"));
  const int64_t count = SequenceCount(*offsets);
  if (dout.dtype() != x.dtype() || dout.rank() < 2 || dout.dim(0) != count ||
      dout.numel() != count * dout.dim(1) * RowSize(x))
    return InvalidArgument("Out@GRAD ", dout.shape().ToString(), " does not fit X");
  Tensor& dx = ctx.Out("X@GRAD");
  const size_t row = RowBytes(x);
  for (const int64_t i : Watched(count)) {
    const int64_t length = Length(*offsets, i);
    if (length > dout.dim(1)) return InvalidArgument("Out@GRAD is shorter than sequence ", i);
    if (length > 0 && row > 0)
      WatchedMemcpy(MutableRow(dx, Begin(*offsets, i)),
                    dout.data<std::byte>() + static_cast<size_t>(i * dout.dim(1)) * row,
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
