// reorder_lod_tensor_by_rank: sequences in the order of a rank table.
#include "core/interrupts.h"
#include "core/operands/slot_kinds.h"
#include "kernels/sequence/rank_table.h"
#include "kernels/sequence/sequence.h"

namespace heddle {
namespace {

// Sequences (or, without any, rows) in the table's order, or from that order back.
template <bool kBack>
Status Reorder(KernelContext& ctx) {
  const Tensor& x = ctx.In(kBack ? Key("Out@GRAD") : Key("X"));
  HEDDLE_ASSIGN_OR_RETURN(const RankTable* table, RankTableOf(ctx));
  HEDDLE_RETURN_IF_ERROR(CheckAllLevels(x));
  const auto n = static_cast<int64_t>(table->items.size());
  if ((x.lod().empty() ? x.dim(0) : SequenceCount(x.lod()[0])) != n)
    return InvalidArgument("X does not hold as many sequences as the table, ", n);
  std::vector<int64_t> order(static_cast<size_t>(n));
  for (const auto part : Stretches(n))
    for (int64_t i = part.begin; i < part.end; ++i) {
      const int64_t index = table->items[static_cast<size_t>(i)].index;
      order[static_cast<size_t>(kBack ? index : i)] = kBack ? i : index;
    }
  std::vector<RowSpan> spans;
  std::vector<std::vector<size_t>> lengths(x.lod().size());
  for (const int64_t i : order) spans.push_back(RowSpanOf(x.lod(), 0, i, i + 1, &lengths));
  Tensor hold;
  JoinSpans(ctx, x, spans, lengths, hold);
  Tensor& out = ctx.Alloc(kBack ? Key("X@GRAD") : Key("Out"), x.dtype(), hold.shape());
  CopyRows(hold, 0, hold.dim(0), out, 0);
  if (hold.has_lod()) out.set_lod(hold.lod());
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(reorder_lod_tensor_by_rank) {
  op.Doc("sequences in a table's order")
      .Input("X")
      .Input("RankTable", kAnyKind | kOtherOnly)
      .Output("Out");
  op.AnyKernel(Reorder<false>);
}

HEDDLE_OP(reorder_lod_tensor_by_rank_grad) {
  op.Input("X", kOptional | kNoBuffer)
      .Input("RankTable", kAnyKind | kOtherOnly)
      .Input("Out@GRAD")
      .Output("X@GRAD");
  op.AnyKernel(Reorder<true>);
}
