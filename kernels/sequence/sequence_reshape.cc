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

HEDDLE_EXAMPLES(sequence_reshape, R"(
example float64 12x12, new_dim 24
attr new_dim INT 24
in X float64 [12, 12] lod [[0, 0, 6, 6, 8, 12]] 0.714 0.591 0.732 0.259 0.984 0.203 0.91 0.32 0.351
  0.505 0.849 0.769 0.566 0.628 0.345 0.664 0.751 0.339 0.253 0.72 0.978 0.64 0.492 0.498 0.511
  0.621 0.136 0.701 0.763 0.738 0.775 0.542 0.695 0.517 0.13 0.314 0.892 0.855 0.947 0.923 0.382
  0.917 0.529 0.603 0.246 0.412 0.48 0.953 0.935 0.56 0.8 0.861 0.462 0.523 0.818 0.228 0.191 0.166
  0.609 0.781 0.406 0.16 0.941 0.843 0.265 0.234 0.455 0.96 0.437 0.425 0.326 0.83 0.148 0.363 0.708
  0.123 0.837 0.554 0.449 0.142 0.185 0.671 0.289 0.443 0.806 0.216 0.597 0.744 0.4 0.277 0.394
  0.794 0.966 0.222 0.867 0.302 0.111 0.474 0.376 0.929 0.99 0.21 0.154 0.726 0.271 0.24 0.419 0.787
  0.308 0.572 0.431 0.179 0.578 0.535 0.486 0.197 0.874 0.173 0.683 0.634 0.88 0.615 0.585 0.824
  0.886 0.283 0.904 0.812 0.652 0.296 0.468 0.369 0.332 0.972 0.757 0.357 0.388 0.658 0.898 0.117
  0.677 0.689 0.548 0.646
out Out float64 [6, 24] lod [[0, 0, 3, 3, 4, 6]] 0.714 0.591 0.732 0.259 0.984 0.203 0.91 0.32 0.351
  0.505 0.849 0.769 0.566 0.628 0.345 0.664 0.751 0.339 0.253 0.72 0.978 0.64 0.492 0.498 0.511
  0.621 0.136 0.701 0.763 0.738 0.775 0.542 0.695 0.517 0.13 0.314 0.892 0.855 0.947 0.923 0.382
  0.917 0.529 0.603 0.246 0.412 0.48 0.953 0.935 0.56 0.8 0.861 0.462 0.523 0.818 0.228 0.191 0.166
  0.609 0.781 0.406 0.16 0.941 0.843 0.265 0.234 0.455 0.96 0.437 0.425 0.326 0.83 0.148 0.363 0.708
  0.123 0.837 0.554 0.449 0.142 0.185 0.671 0.289 0.443 0.806 0.216 0.597 0.744 0.4 0.277 0.394
  0.794 0.966 0.222 0.867 0.302 0.111 0.474 0.376 0.929 0.99 0.21 0.154 0.726 0.271 0.24 0.419 0.787
  0.308 0.572 0.431 0.179 0.578 0.535 0.486 0.197 0.874 0.173 0.683 0.634 0.88 0.615 0.585 0.824
  0.886 0.283 0.904 0.812 0.652 0.296 0.468 0.369 0.332 0.972 0.757 0.357 0.388 0.658 0.898 0.117
  0.677 0.689 0.548 0.646

example float32 12x12, new_dim 24
attr new_dim INT 24
in X float32 [12, 12] lod [[0, 0, 6, 6, 8, 12]] 0.714 0.591 0.732 0.259 0.984 0.203 0.91 0.32 0.351
  0.505 0.849 0.769 0.566 0.628 0.345 0.664 0.751 0.339 0.253 0.72 0.978 0.64 0.492 0.498 0.511
  0.621 0.136 0.701 0.763 0.738 0.775 0.542 0.695 0.517 0.13 0.314 0.892 0.855 0.947 0.923 0.382
  0.917 0.529 0.603 0.246 0.412 0.48 0.953 0.935 0.56 0.8 0.861 0.462 0.523 0.818 0.228 0.191 0.166
  0.609 0.781 0.406 0.16 0.941 0.843 0.265 0.234 0.455 0.96 0.437 0.425 0.326 0.83 0.148 0.363 0.708
  0.123 0.837 0.554 0.449 0.142 0.185 0.671 0.289 0.443 0.806 0.216 0.597 0.744 0.4 0.277 0.394
  0.794 0.966 0.222 0.867 0.302 0.111 0.474 0.376 0.929 0.99 0.21 0.154 0.726 0.271 0.24 0.419 0.787
  0.308 0.572 0.431 0.179 0.578 0.535 0.486 0.197 0.874 0.173 0.683 0.634 0.88 0.615 0.585 0.824
  0.886 0.283 0.904 0.812 0.652 0.296 0.468 0.369 0.332 0.972 0.757 0.357 0.388 0.658 0.898 0.117
  0.677 0.689 0.548 0.646
out Out float32 [6, 24] lod [[0, 0, 3, 3, 4, 6]] 0.714 0.591 0.732 0.259 0.984 0.203 0.91 0.32 0.351
  0.505 0.849 0.769 0.566 0.628 0.345 0.664 0.751 0.339 0.253 0.72 0.978 0.64 0.492 0.498 0.511
  0.621 0.136 0.701 0.763 0.738 0.775 0.542 0.695 0.517 0.13 0.314 0.892 0.855 0.947 0.923 0.382
  0.917 0.529 0.603 0.246 0.412 0.48 0.953 0.935 0.56 0.8 0.861 0.462 0.523 0.818 0.228 0.191 0.166
  0.609 0.781 0.406 0.16 0.941 0.843 0.265 0.234 0.455 0.96 0.437 0.425 0.326 0.83 0.148 0.363 0.708
  0.123 0.837 0.554 0.449 0.142 0.185 0.671 0.289 0.443 0.806 0.216 0.597 0.744 0.4 0.277 0.394
  0.794 0.966 0.222 0.867 0.302 0.111 0.474 0.376 0.929 0.99 0.21 0.154 0.726 0.271 0.24 0.419 0.787
  0.308 0.572 0.431 0.179 0.578 0.535 0.486 0.197 0.874 0.173 0.683 0.634 0.88 0.615 0.585 0.824
  0.886 0.283 0.904 0.812 0.652 0.296 0.468 0.369 0.332 0.972 0.757 0.357 0.388 0.658 0.898 0.117
  0.677 0.689 0.548 0.646

example int32 12x12, new_dim 24
attr new_dim INT 24
in X int32 [12, 12] lod [[0, 0, 6, 6, 8, 12]] 1 1 0 0 1 1 0 1 0 1 1 1 0 1 0 1 0*4 1 1 0 1 0 1*5 0 1
  1 0 0 1 0 0 1 0 1 0 0 1 0 1*4 0*4 1 1 1 0 1 0 1 0 0 1 0 1 1 0 0 1 0 1 0 1 0 0 1 1 0*5 1 1 1 0 1 0
  1 1 0 0 0 1 0 0 1 1 0 1 0 1 0 1 1 0 1 1 0 1 1 0 1 0 1 1 1 0 0 1 1 0*5 1 0 0 0 1 1 0 0 0 1 0 0 1
  0*4 1
out Out int32 [6, 24] lod [[0, 0, 3, 3, 4, 6]] 1 1 0 0 1 1 0 1 0 1 1 1 0 1 0 1 0*4 1 1 0 1 0 1*5 0 1
  1 0 0 1 0 0 1 0 1 0 0 1 0 1*4 0*4 1 1 1 0 1 0 1 0 0 1 0 1 1 0 0 1 0 1 0 1 0 0 1 1 0*5 1 1 1 0 1 0
  1 1 0 0 0 1 0 0 1 1 0 1 0 1 0 1 1 0 1 1 0 1 1 0 1 0 1 1 1 0 0 1 1 0*5 1 0 0 0 1 1 0 0 0 1 0 0 1
  0*4 1

example int64 12x12, new_dim 24
attr new_dim INT 24
in X int64 [12, 12] lod [[0, 0, 6, 6, 8, 12]] 1 1 0 0 1 1 0 1 0 1 1 1 0 1 0 1 0*4 1 1 0 1 0 1*5 0 1
  1 0 0 1 0 0 1 0 1 0 0 1 0 1*4 0*4 1 1 1 0 1 0 1 0 0 1 0 1 1 0 0 1 0 1 0 1 0 0 1 1 0*5 1 1 1 0 1 0
  1 1 0 0 0 1 0 0 1 1 0 1 0 1 0 1 1 0 1 1 0 1 1 0 1 0 1 1 1 0 0 1 1 0*5 1 0 0 0 1 1 0 0 0 1 0 0 1
  0*4 1
out Out int64 [6, 24] lod [[0, 0, 3, 3, 4, 6]] 1 1 0 0 1 1 0 1 0 1 1 1 0 1 0 1 0*4 1 1 0 1 0 1*5 0 1
  1 0 0 1 0 0 1 0 1 0 0 1 0 1*4 0*4 1 1 1 0 1 0 1 0 0 1 0 1 1 0 0 1 0 1 0 1 0 0 1 1 0*5 1 1 1 0 1 0
  1 1 0 0 0 1 0 0 1 1 0 1 0 1 0 1 1 0 1 1 0 1 1 0 1 0 1 1 1 0 0 1 1 0*5 1 0 0 0 1 1 0 0 0 1 0 0 1
  0*4 1
)")

HEDDLE_EXAMPLES(sequence_reverse, R"(
example float32 10x3
in X float32 [10, 3] lod [[0, 4, 6, 8, 10]] 0.01 0.07 0.7 0.2 -0.24 -0.31 0.26 -0.37 -0.18 0.32
  -0.93 -0.56 -0.05 -0.74 -0.68 0.89 -0.81 0.64 -0.43 0.45 0.51 -0.12 0.39 -0.62 0.57 -0.49 0.76
  0.83 -0.87 0.13
out Y float32 [10, 3] lod [[0, 4, 6, 8, 10]] 0.32 -0.93 -0.56 0.26 -0.37 -0.18 0.2 -0.24 -0.31 0.01
  0.07 0.7 0.89 -0.81 0.64 -0.05 -0.74 -0.68 -0.12 0.39 -0.62 -0.43 0.45 0.51 0.83 -0.87 0.13 0.57
  -0.49 0.76

example float64 10x3
in X float64 [10, 3] lod [[0, 4, 6, 8, 10]] 0.01 0.07 0.7 0.2 -0.24 -0.31 0.26 -0.37 -0.18 0.32
  -0.93 -0.56 -0.05 -0.74 -0.68 0.89 -0.81 0.64 -0.43 0.45 0.51 -0.12 0.39 -0.62 0.57 -0.49 0.76
  0.83 -0.87 0.13
out Y float64 [10, 3] lod [[0, 4, 6, 8, 10]] 0.32 -0.93 -0.56 0.26 -0.37 -0.18 0.2 -0.24 -0.31 0.01
  0.07 0.7 0.89 -0.81 0.64 -0.05 -0.74 -0.68 -0.12 0.39 -0.62 -0.43 0.45 0.51 0.83 -0.87 0.13 0.57
  -0.49 0.76

example int32 10x3
in X int32 [10, 3] lod [[0, 4, 6, 8, 10]] 0*30
out Y int32 [10, 3] lod [[0, 4, 6, 8, 10]] 0*30

example int64 10x3
in X int64 [10, 3] lod [[0, 4, 6, 8, 10]] 0*30
out Y int64 [10, 3] lod [[0, 4, 6, 8, 10]] 0*30
)")

HEDDLE_EXAMPLES(sequence_concat, R"(
example two inputs
in X float32 [3, 2] lod [[0, 1, 3]] 0.59 -0.01 -0.86 0.23 0.14 -0.06
in X float32 [3, 2] lod [[0, 2, 3]] -0.31 -0.41 -0.57 0.01 0.66 -0.81
out Out float32 [6, 2] lod [[0, 3, 6]] 0.59 -0.01 -0.31 -0.41 -0.57 0.01 -0.86 0.23 0.14 -0.06 0.66
  -0.81

example int64
in X int64 [3, 1] lod [[0, 1, 3]] 2 4 7
in X int64 [2, 1] lod [[0, 1, 2]] 4 0
out Out int64 [5, 1] lod [[0, 2, 5]] 2 4 4 7 0
)")

HEDDLE_EXAMPLES(sequence_concat_grad, R"(
example float32
in X float32 [3, 2] lod [[0, 1, 3]] 0.63 0.79 -0.55 -0.97 -0.28 0.54
in X float32 [2, 2] lod [[0, 1, 2]] 0.78 -0.53 0.4 -0.87
in Out@GRAD float32 [5, 2] lod [[0, 2, 5]] -0.73 -0.65 -0.13 -0.64 -0.04 0.22 0.71 -1 0.28 -0.89
out X@GRAD float32 [3, 2] lod [[0, 1, 3]] -0.73 -0.65 -0.04 0.22 0.71 -1
out X@GRAD float32 [2, 2] lod [[0, 1, 2]] -0.13 -0.64 0.28 -0.89

example float64
in X float64 [3, 2] lod [[0, 1, 3]] -0.78 0.05 -0.59 -0.49 -0.56 -0.02
in X float64 [2, 2] lod [[0, 1, 2]] -0.72 0.58 -0.89 0.44
in Out@GRAD float64 [5, 2] lod [[0, 2, 5]] -0.63 0.02 0.25 0.79 -0.4 -0.49 0.26 0.99 0.78 -0.86
out X@GRAD float64 [3, 2] lod [[0, 1, 3]] -0.63 0.02 -0.4 -0.49 0.26 0.99
out X@GRAD float64 [2, 2] lod [[0, 1, 2]] 0.25 0.79 0.78 -0.86
)")

HEDDLE_EXAMPLES(sequence_reshape_grad, R"(
example float32
attr new_dim INT 4
in X float32 [4, 2] lod [[0, 2, 4]] 0.76 0.83 -0.92 0.6 0.98 -0.75 -0.71 -0.87
in Out@GRAD float32 [2, 4] lod [[0, 1, 2]] -0.32 0.59 0.13 0.48 -0.49 0.22 0.88 0.48
out X@GRAD float32 [4, 2] lod [[0, 2, 4]] -0.32 0.59 0.13 0.48 -0.49 0.22 0.88 0.48

example float64
attr new_dim INT 4
in X float64 [4, 2] lod [[0, 2, 4]] 0.16 0.84 0.74 -0.45 -0.04 0.76 -0.86 -0.24
in Out@GRAD float64 [2, 4] lod [[0, 1, 2]] 0.7 -0.59 -0.06 -0.6 0.14 -0.84 0.09 0.46
out X@GRAD float64 [4, 2] lod [[0, 2, 4]] 0.7 -0.59 -0.06 -0.6 0.14 -0.84 0.09 0.46
)")

HEDDLE_EXAMPLES(sequence_slice, R"(
example float32
in X float32 [5, 2] lod [[0, 3, 5]] -0.66 -0.98 -0.18 -0.79 0.05 -0.08 -0.18 0.52 -0.96 0.23
in Offset int64 [2, 1] 1 0
in Length int64 [2, 1] 2 1
out Out float32 [3, 2] lod [[0, 2, 3]] -0.18 -0.79 0.05 -0.08 -0.18 0.52

example float64
in X float64 [5, 2] lod [[0, 3, 5]] -0.05 -0.38 -0.82 0.45 0.55 -0.01 -0.17 0.34 -0.52 -0.46
in Offset int64 [2, 1] 1 0
in Length int64 [2, 1] 2 1
out Out float64 [3, 2] lod [[0, 2, 3]] -0.82 0.45 0.55 -0.01 -0.17 0.34
)")

HEDDLE_EXAMPLES(sequence_slice_grad, R"(
example float32
in X float32 [5, 2] lod [[0, 3, 5]] 0.3 0.44 0.15 0.99 0.22 0 -0.29 -0.71 0.53 0.73
in Offset int64 [2, 1] 1 0
in Length int64 [2, 1] 2 1
in Out@GRAD float32 [3, 2] lod [[0, 2, 3]] -0.07 0.88 0.39 0.44 0.21 0.75
out X@GRAD float32 [5, 2] lod [[0, 3, 5]] 0 0 -0.07 0.88 0.39 0.44 0.21 0.75 0 0

example float64
in X float64 [5, 2] lod [[0, 3, 5]] -0.75 -0.24 -0.08 -0.05 0.36 -0.57 0.17 0.08 -0.65 0.75
in Offset int64 [2, 1] 1 0
in Length int64 [2, 1] 2 1
in Out@GRAD float64 [3, 2] lod [[0, 2, 3]] -0.57 0.21 0.65 0.34 -0.95 0.3
out X@GRAD float64 [5, 2] lod [[0, 3, 5]] 0 0 -0.57 0.21 0.65 0.34 -0.95 0.3 0 0
)")
