// sequence_concat: joins sequence i of every input.
#include "core/interrupts.h"
#include "kernels/base/shape_checks.h"
#include "kernels/sequence/sequence.h"

namespace heddle {
namespace {

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
  for (const int64_t i : Watched(SequenceCount(*parts[0]))) {
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
  for (const int64_t i : Watched(SequenceCount(*parts[0])))
    for (size_t k = 0; k < parts.size(); ++k) {
      const int64_t length = Length(*parts[k], i);
      if (Tensor* dx = ctx.OutOpt("X@GRAD", static_cast<int>(k)))
        CopyRows(dout, at, length, *dx, Begin(*parts[k], i));
      at += length;
    }
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

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
