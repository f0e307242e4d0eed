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
