// shrink_rnn_memory: keeps the states of the sequences that have not ended at a step.
#include "core/operands/slot_kinds.h"
#include "kernels/sequence/rank_table.h"
#include "kernels/sequence/sequence.h"

namespace heddle {
namespace {

// The states of the sequences that still run at step I.
Status Shrink(KernelContext& ctx) {
  const Tensor &x = ctx.In("X"), &step = ctx.In("I");
  HEDDLE_ASSIGN_OR_RETURN(const RankTable* table, RankTableOf(ctx));
  if (step.dtype() != DType::kI64 || step.numel() != 1)
    return InvalidArgument("'I' must be one int64");
  HEDDLE_RETURN_IF_ERROR(CheckAllLevels(x));
  const int64_t at = *step.data<int64_t>();
  int64_t running = 0;
  for (const auto& item : table->items) running += item.length > at;
  if (running > (x.lod().empty() ? x.dim(0) : SequenceCount(x.lod()[0])))
    return InvalidArgument("X ", x.shape().ToString(), " holds fewer than ", running, " states");
  std::vector<std::vector<size_t>> lengths(x.lod().size());
  const RowSpan s = RowSpanOf(x.lod(), 0, 0, running, &lengths);
  Shape shape = x.shape();
  shape[0] = s.end - s.begin;
  Tensor& out = ctx.Alloc("Out", x.dtype(), shape);
  CopyRows(x, s.begin, shape[0], out, 0);
  if (!lengths.empty()) out.set_lod(LoDFromLengths(lengths));
  return Status::Ok();
}

Status ShrinkGrad(KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  Tensor& out = ctx.Alloc("X@GRAD", x.dtype(), x.shape());
  ZeroAll(out);
  if (const Tensor* d = ctx.InOpt("Out@GRAD")) {
    if (d->rank() < 1 || d->dim(0) > x.dim(0) || RowBytes(*d) != RowBytes(x))
      return InvalidArgument("Out@GRAD has shape ", d->shape().ToString(), ", X ",
                             x.shape().ToString());
    CopyRows(*d, 0, d->dim(0), out, 0);
  }
  if (x.has_lod()) out.set_lod(x.lod());
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(shrink_rnn_memory) {
  op.Doc("the states of the sequences that still run at step I");
  op.Input("X")
      .Input("RankTable", kAnyKind | kOtherOnly)
      .Input("I")
      .Output("Out")
      .AnyKernel(Shrink);
}

HEDDLE_OP(shrink_rnn_memory_grad) {
  op.Input("X").Input("Out@GRAD", kOptional).Output("X@GRAD").AnyKernel(ShrinkGrad);
}
