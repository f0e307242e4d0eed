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

HEDDLE_EXAMPLES(sequence_pad, R"(
example float32 2x3, padded_length 4
attr padded_length INT 4
in PadValue float32 [1] 0
in X float32 [2, 3] lod [[0, 2]] -0.29 -0.52 0.63 0.17 0.4 -0.06
out Length int64 [1] 2
out Out float32 [1, 4, 3] -0.29 -0.52 0.63 0.17 0.4 -0.06 0*6

example float32 4x3, padded_length 3
attr padded_length INT 3
in PadValue float32 [1] 1.5
in X float32 [4, 3] lod [[0, 2, 3, 4]] 0.19 -0.06 0.07 -0.31 0.57 0.69 -0.43 0.82 0.44 -0.18 -0.56
  0.32
out Length int64 [3] 2 1 1
out Out float32 [3, 3, 3] 0.19 -0.06 0.07 -0.31 0.57 0.69 1.5 1.5 1.5 -0.43 0.82 0.44 1.5*6 -0.18
  -0.56 0.32 1.5*6

example float64 12x4
in PadValue float64 [1] 1
in X float64 [12, 4] lod [[0, 2, 5, 9, 12]] 0.321 0.208 0.159 0.466 0.426 0.385 0.434 0.127 0.305
  0.24 0.119 0.224 0.45 0.168 0.2 0.41 0.151 0.353 0.377 0.402 0.264 0.418 0.369 0.176 0.313 0.337
  0.442 0.394 0.361 0.289 0.272 0.474 0.297 0.256 0.329 0.111 0.345 0.135 0.232 0.143 0.248 0.458
  0.482 0.184 0.49 0.216 0.192 0.281
out Length int64 [4] 2 3 4 3
out Out float64 [4, 4, 4] 0.321 0.208 0.159 0.466 0.426 0.385 0.434 0.127 1*8 0.305 0.24 0.119 0.224
  0.45 0.168 0.2 0.41 0.151 0.353 0.377 0.402 1*4 0.264 0.418 0.369 0.176 0.313 0.337 0.442 0.394
  0.361 0.289 0.272 0.474 0.297 0.256 0.329 0.111 0.345 0.135 0.232 0.143 0.248 0.458 0.482 0.184
  0.49 0.216 0.192 0.281 1*4

example int32 2x3, padded_length 4
attr padded_length INT 4
in PadValue int32 [1] 0
in X int32 [2, 3] lod [[0, 2]] 0*6
out Length int64 [1] 2
out Out int32 [1, 4, 3] 0*12

example int64 2x3, padded_length 4
attr padded_length INT 4
in PadValue int64 [1] 0
in X int64 [2, 3] lod [[0, 2]] 0*6
out Length int64 [1] 2
out Out int64 [1, 4, 3] 0*12
)")

HEDDLE_EXAMPLES(sequence_pad_grad, R"(
example float64 1x4x3, padded_length 4
attr padded_length INT 4
in Out@GRAD float64 [1, 4, 3] 0 0.4 -0.5 0.3 0.8 0.4 -0.6 -0.4 -0.5 -0.8 1 -0.8
in X float64 [2, 3] lod [[0, 2]] -0.29 0.4 -0.06 0.63 -0.52 0.17
out X@GRAD float64 [2, 3] lod [[0, 2]] 0 0.4 -0.5 0.3 0.8 0.4

example float64 3x3x3, padded_length 3
attr padded_length INT 3
in Out@GRAD float64 [3, 3, 3] 0 0.1 -0.9 -0.7 0.4 0.7 -0.4 0.8 0.4 -0.6 0.1 -0.3 -0.6 0.6 0.9 -0.5
  -0.8 0.2 0.5 -0.4 0.4 0 -0.9 -0.7 -0.6 1 0
in X float64 [4, 3] lod [[0, 2, 3, 4]] 0.19 0.44 -0.18 -0.06 0.82 -0.56 -0.43 0.07 0.57 0.32 -0.31
  0.69
out X@GRAD float64 [4, 3] lod [[0, 2, 3, 4]] 0 0.1 -0.9 -0.7 0.4 0.7 -0.6 0.1 -0.3 0.5 -0.4 0.4

example float32 1x4x3, padded_length 4
attr padded_length INT 4
in Out@GRAD float32 [1, 4, 3] 0 0.4 -0.5 0.3 0.8 0.4 -0.6 -0.4 -0.5 -0.8 1 -0.8
in X float32 [2, 3] lod [[0, 2]] -0.29 0.4 -0.06 0.63 -0.52 0.17
out X@GRAD float32 [2, 3] lod [[0, 2]] 0 0.4 -0.5 0.3 0.8 0.4
)")
