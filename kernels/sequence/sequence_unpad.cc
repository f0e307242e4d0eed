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

HEDDLE_EXAMPLES(sequence_unpad, R"(
example float64 3x3x2x3
in Length int64 [3] 2 3 2
in X float64 [3, 3, 2, 3] 0.617 0.491 0.184 0.292 0.166 0.798 0.13 0.076 0.599 0.058 0.545 0.87
  0.419 0.834 0.328 0.364 0.31 0.978 0.094 0.581 0.96 0.852 0.725 0.707 0.22 0.238 0.112 0.274 0.202
  0.401 0.635 0.346 0.256 0.653 0.78 0.689 0.455 0.906 0.383 0.816 0.671 0.509 0.888 0.761 0.743
  0.473 0.924 0.04 0.527 0.563 0.022 0.148 0.437 0.942
out Out float64 [7, 2, 3] lod [[0, 2, 5, 7]] 0.617 0.491 0.184 0.292 0.166 0.798 0.13 0.076 0.599
  0.058 0.545 0.87 0.094 0.581 0.96 0.852 0.725 0.707 0.22 0.238 0.112 0.274 0.202 0.401 0.635 0.346
  0.256 0.653 0.78 0.689 0.455 0.906 0.383 0.816 0.671 0.509 0.888 0.761 0.743 0.473 0.924 0.04

example float32 3x3x2x3
in Length int64 [3] 2 3 2
in X float32 [3, 3, 2, 3] 0.617 0.491 0.184 0.292 0.166 0.798 0.13 0.076 0.599 0.058 0.545 0.87
  0.419 0.834 0.328 0.364 0.31 0.978 0.094 0.581 0.96 0.852 0.725 0.707 0.22 0.238 0.112 0.274 0.202
  0.401 0.635 0.346 0.256 0.653 0.78 0.689 0.455 0.906 0.383 0.816 0.671 0.509 0.888 0.761 0.743
  0.473 0.924 0.04 0.527 0.563 0.022 0.148 0.437 0.942
out Out float32 [7, 2, 3] lod [[0, 2, 5, 7]] 0.617 0.491 0.184 0.292 0.166 0.798 0.13 0.076 0.599
  0.058 0.545 0.87 0.094 0.581 0.96 0.852 0.725 0.707 0.22 0.238 0.112 0.274 0.202 0.401 0.635 0.346
  0.256 0.653 0.78 0.689 0.455 0.906 0.383 0.816 0.671 0.509 0.888 0.761 0.743 0.473 0.924 0.04

example int32 3x3x2x3
in Length int64 [3] 2 3 2
in X int32 [3, 3, 2, 3] 1 1 0 0 1 1 0 1 0 1 1 1 0 1 0 1 0*4 1 1 0 1 0 1*5 0 1 1 0 0 1 0 0 1 0 1 0 0
  1 0 1*4 0*4 1
out Out int32 [7, 2, 3] lod [[0, 2, 5, 7]] 1 1 0 0 1 1 0 1 0 1 1 1 0 0 1 1 0 1 0 1*5 0 1 1 0 0 1 0 0
  1 0 1 0 0 1 0 1 1 1
)")

HEDDLE_EXAMPLES(sequence_unpad_grad, R"(
example float64 2x3x3x3x2
in Out@GRAD float64 [1, 3, 3, 2] lod [[0, 0, 1]] 0 0.6 0.1 -0.4 0.6 -0.4 -0.5 -0.3 -0.9 0.9 0.5 0.9
  0.3 0.4 -0.4 0.8 0.3 -0.2
in X float64 [2, 3, 3, 3, 2] 0.321 0.971 0.587 0.367 0.651 0.513 0.211 0.532 0.706 0.312 0.962 0.577
  0.632 0.522 0.037 0.861 0.357 0.046 0.449 0.348 0.504 0.412 0.889 0.752 0.495 0.724 0.183 0.953
  0.092 0.458 0.614 0.623 0.77 0.669 0.238 0.678 0.605 0.816 0.33 0.742 0.064 0.907 0.128 0.028 0.88
  0.083 0.229 0.99 0.119 0.834 0.275 0.055 0.165 0.147 0.22 0.44 0.257 0.431 0.697 0.935 0.174 0.898
  0.733 0.293 0.916 0.55 0.403 0.156 0.073 0.248 0.202 0.467 0.687 0.302 0.486 0.11 0.642 0.926
  0.138 0.779 0.101 0.788 0.761 0.715 0.797 0.266 0.981 0.284 0.193 0.385 0.541 0.394 0.559 0.339
  0.843 0.944 0.376 0.422 0.825 0.009 0.568 0.018 0.852 0.871 0.596 0.66 0.806 0.477
out X@GRAD float64 [2, 3, 3, 3, 2] 0*55 0.6 0.1 -0.4 0.6 -0.4 -0.5 -0.3 -0.9 0.9 0.5 0.9 0.3 0.4
  -0.4 0.8 0.3 -0.2 0*36

example float32 2x3x3x3x2
in Out@GRAD float32 [1, 3, 3, 2] lod [[0, 0, 1]] 0 0.6 0.1 -0.4 0.6 -0.4 -0.5 -0.3 -0.9 0.9 0.5 0.9
  0.3 0.4 -0.4 0.8 0.3 -0.2
in X float32 [2, 3, 3, 3, 2] 0.321 0.971 0.587 0.367 0.651 0.513 0.211 0.532 0.706 0.312 0.962 0.577
  0.632 0.522 0.037 0.861 0.357 0.046 0.449 0.348 0.504 0.412 0.889 0.752 0.495 0.724 0.183 0.953
  0.092 0.458 0.614 0.623 0.77 0.669 0.238 0.678 0.605 0.816 0.33 0.742 0.064 0.907 0.128 0.028 0.88
  0.083 0.229 0.99 0.119 0.834 0.275 0.055 0.165 0.147 0.22 0.44 0.257 0.431 0.697 0.935 0.174 0.898
  0.733 0.293 0.916 0.55 0.403 0.156 0.073 0.248 0.202 0.467 0.687 0.302 0.486 0.11 0.642 0.926
  0.138 0.779 0.101 0.788 0.761 0.715 0.797 0.266 0.981 0.284 0.193 0.385 0.541 0.394 0.559 0.339
  0.843 0.944 0.376 0.422 0.825 0.009 0.568 0.018 0.852 0.871 0.596 0.66 0.806 0.477
out X@GRAD float32 [2, 3, 3, 3, 2] 0*55 0.6 0.1 -0.4 0.6 -0.4 -0.5 -0.3 -0.9 0.9 0.5 0.9 0.3 0.4
  -0.4 0.8 0.3 -0.2 0*36
)")
