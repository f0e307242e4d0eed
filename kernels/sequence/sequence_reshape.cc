// sequence_reshape, sequence_reverse, sequence_concat and sequence_slice: rows of sequences moved
// about.
#include "kernels/base/shape_checks.h"
#include "kernels/sequence/sequence.h"

namespace heddle {
namespace {

Status Reshape(KernelContext& ctx) {
  const Tensor x = ctx.In("X");
  HEDDLE_ASSIGN_OR_RETURN(const Offsets* const offsets, OffsetsOf(x, "X"));
  const int64_t width = RowSize(x), dim = ctx.Int("new_dim");
  if (x.rank() != 2 || dim <= 0)
    return InvalidArgument("X must be [N, M] and new_dim positive, not ", x.shape().ToString(),
                           " and ", dim);
  Offsets made{0};
  for (size_t i = 1; i < offsets->size(); ++i) {
    const int64_t elements = static_cast<int64_t>((*offsets)[i]) * width;
    if (elements % dim != 0)
      return InvalidArgument("sequence ", i - 1, " cannot be cut into rows of ", dim);
    made.push_back(static_cast<size_t>(elements / dim));
  }
  Tensor& out = ctx.Alloc("Out", x.dtype(), Shape{x.numel() / dim, dim});
  if (x.bytes() > 0) std::memcpy(out.mutable_raw(), x.raw(), x.bytes());
  out.set_lod({std::move(made)});
  return Status::Ok();
}

Status ReshapeGrad(KernelContext& ctx) {
  const Tensor& dout = ctx.In("Out@GRAD");
  Tensor& dx = ctx.Out("X@GRAD");
  if (dout.bytes() != dx.bytes())
    return InvalidArgument("Out@GRAD ", dout.shape().ToString(), " does not fit X ",
                           dx.shape().ToString());
  if (dx.bytes() > 0) std::memcpy(dx.mutable_raw(), dout.raw(), dx.bytes());
  return Status::Ok();
}

Status Reverse(KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  HEDDLE_ASSIGN_OR_RETURN(const Offsets* const offsets, OffsetsOf(x, "X"));
  Tensor& out = ctx.Out("Y");
  for (int64_t i = 0; i < SequenceCount(*offsets); ++i)
    for (int64_t k = 0, length = Length(*offsets, i); k < length; ++k)
      CopyRows(x, Begin(*offsets, i) + k, 1, out, Begin(*offsets, i) + length - 1 - k);
  return Status::Ok();
}

// Offsets of every input; all must have equally many sequences and rows of equal size.
Result<std::vector<const Offsets*>> ReadParts(KernelContext& ctx) {
  std::vector<const Offsets*> parts;
  const Tensor& first = ctx.In("X");
  for (int i = 0; i < ctx.InCount("X"); ++i) {
    const Tensor& x = ctx.In("X", i);
    HEDDLE_ASSIGN_OR_RETURN(const Offsets* const own, OffsetsOf(x, "X"));
    parts.push_back(own);
    if (own->size() != parts[0]->size() || RowSize(x) != RowSize(first) ||
        x.dtype() != first.dtype())
      return InvalidArgument("X[", i, "] ", x.shape().ToString(),
                             " must have the sequences, rows and dtype of X[0]");
  }
  return parts;
}

Status Concat(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<const Offsets*> parts, ReadParts(ctx));
  Shape shape = ctx.In("X").shape();
  shape[0] = 0;
  for (const Offsets* o : parts) shape[0] += static_cast<int64_t>(o->back());
  Tensor& out = ctx.Alloc("Out", ctx.In("X").dtype(), shape);
  Offsets made{0};
  int64_t at = 0;
  for (int64_t i = 0; i < SequenceCount(*parts[0]); ++i) {
    for (size_t k = 0; k < parts.size(); ++k) {
      const int64_t length = Length(*parts[k], i);
      CopyRows(ctx.In("X", static_cast<int>(k)), Begin(*parts[k], i), length, out, at);
      at += length;
    }
    made.push_back(static_cast<size_t>(at));
  }
  out.set_lod({std::move(made)});
  return Status::Ok();
}

Status ConcatGrad(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<const Offsets*> parts, ReadParts(ctx));
  const Tensor& dout = ctx.In("Out@GRAD");
  int64_t total = 0, at = 0;
  for (const Offsets* o : parts) total += static_cast<int64_t>(o->back());
  if (dout.rank() < 1 || dout.dim(0) != total || RowSize(dout) != RowSize(ctx.In("X")))
    return InvalidArgument("Out@GRAD ", dout.shape().ToString(), " must have ", total, " rows");
  for (int64_t i = 0; i < SequenceCount(*parts[0]); ++i)
    for (size_t k = 0; k < parts.size(); ++k) {
      const int64_t length = Length(*parts[k], i);
      if (Tensor* dx = ctx.OutOpt("X@GRAD", static_cast<int>(k)))
        CopyRows(dout, at, length, *dx, Begin(*parts[k], i));
      at += length;
    }
  return Status::Ok();
}

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
  for (int64_t i = 0; i < count; ++i) {
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

HEDDLE_OP(sequence_reshape) {
  op.Doc("sequences of other row lengths over the same values")
      .Input("X")
      .Output("Out")
      .Attr("new_dim", 1)
      .AnyKernel(Reshape);
}

HEDDLE_OP(sequence_reshape_grad) {
  op.Input("X", kNoBuffer)
      .Input("Out@GRAD")
      .Output("X@GRAD")
      .Attr("new_dim", 1)
      .InferShape(SequenceGradLikeX)
      .AnyKernel(ReshapeGrad);
}

HEDDLE_OP(sequence_reverse) {
  op.Doc("each sequence backwards").Input("X").Output("Y").InferShape(SameShape).AnyKernel(Reverse);
}

HEDDLE_OP(sequence_concat) {
  op.Doc("joins the i-th sequences of all inputs")
      .Input("X", kList)
      .Output("Out")
      .AnyKernel(Concat);
}

HEDDLE_OP(sequence_concat_grad) {
  op.Input("X", kList | kNoBuffer)
      .Input("Out@GRAD")
      .Output("X@GRAD", kList)
      .InferShape(GradLikeInputs)
      .AnyKernel(ConcatGrad);
}

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
