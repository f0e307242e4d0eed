// sequence_slice: a part of each sequence.
#include "core/interrupts.h"
#include "kernels/base/shape_checks.h"
#include "kernels/sequence/sequence.h"

namespace heddle {
namespace {

struct Slices {
  std::vector<int64_t> start, length;  // rows of X, per sequence
  int64_t total = 0;
};

Result<Slices> ReadSlices(KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  HEDDLE_ASSIGN_OR_RETURN(const Offsets* const offsets, OffsetsOf(x, "X"));
  const int64_t count = SequenceCount(*offsets);
  if (ctx.In("Offset").numel() != count || ctx.In("Length").numel() != count)
    return InvalidArgument("Offset and Length must have one element per sequence, ", count);
  const Labels offset(ctx, ctx.In("Offset")), length(ctx, ctx.In("Length"));
  Slices s;
  for (const int64_t i : Watched(count)) {
    if (offset[i] < 0 || length[i] < 0 || offset[i] > Length(*offsets, i) ||
        length[i] > Length(*offsets, i) - offset[i])
      return OutOfRange("slice [", offset[i], ", +", length[i], ") leaves sequence ", i,
                        " of length ", Length(*offsets, i));
    s.start.push_back(Begin(*offsets, i) + offset[i]);
    s.length.push_back(length[i]);
    s.total += length[i];
  }
  return s;
}

Status Slice(KernelContext& ctx) {
  const Tensor x = ctx.In("X");
  HEDDLE_ASSIGN_OR_RETURN(const Slices s, ReadSlices(ctx));
  Shape shape = x.shape();
  shape[0] = s.total;
  Tensor& out = ctx.Alloc("Out", x.dtype(), shape);
  Offsets made{0};
  for (size_t i = 0; i < s.start.size(); ++i) {
    CopyRows(x, s.start[i], s.length[i], out, static_cast<int64_t>(made.back()));
    made.push_back(made.back() + static_cast<size_t>(s.length[i]));
  }
  out.set_lod({std::move(made)});
  return Status::Ok();
}

Status SliceGrad(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const Slices s, ReadSlices(ctx));
  const Tensor& dout = ctx.In("Out@GRAD");
  Tensor& dx = ctx.Out("X@GRAD");
  if (dout.rank() < 1 || dout.dim(0) != s.total || RowSize(dout) != RowSize(dx))
    return InvalidArgument("Out@GRAD ", dout.shape().ToString(), " must have ", s.total, " rows");
  ZeroAll(dx);
  int64_t at = 0;
  for (size_t i = 0; i < s.start.size(); at += s.length[i++])
    CopyRows(dout, at, s.length[i], dx, s.start[i]);
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(sequence_slice) {
  op.Doc("a piece of each sequence")
      .Input("X")
      .Input("Offset")
      .Input("Length")
      .Output("Out")
      .AnyKernel(Slice);
}

HEDDLE_OP(sequence_slice_grad) {
  op.Input("X", kNoBuffer)
      .Input("Offset")
      .Input("Length")
      .Input("Out@GRAD")
      .Output("X@GRAD")
      .InferShape(SequenceGradLikeX)
      .AnyKernel(SliceGrad);
}
