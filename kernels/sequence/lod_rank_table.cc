// lod_rank_table and max_sequence_len: sequences sorted by length, longest first.
#include <algorithm>

#include "core/operands/slot_kinds.h"
#include "kernels/sequence/rank_table.h"
#include "kernels/sequence/sequence.h"

namespace heddle {
namespace {

Status MakeTable(KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  const int64_t level = ctx.Int("level");
  if (level < 0 || level >= static_cast<int64_t>(x.lod().size()))
    return InvalidArgument("X has ", x.lod().size(), " levels of sequences; 'level' is ", level);
  HEDDLE_ASSIGN_OR_RETURN(const Offsets* o, OffsetsOf(x, "X", static_cast<int>(level)));
  RankTable table;
  for (int64_t i = 0; i < SequenceCount(*o); ++i) table.items.push_back({i, Length(*o, i)});
  std::stable_sort(table.items.begin(), table.items.end(),
                   [](const auto& a, const auto& b) { return a.length > b.length; });
  table.outer.assign(x.lod().begin(), x.lod().begin() + level);
  ctx.OutVar("Out")->mutable_other() = std::move(table);
  return Status::Ok();
}

Status MaxLength(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const RankTable* table, RankTableOf(ctx));
  *ctx.Alloc("Out", DType::kI64, {1}).mutable_data<int64_t>() =
      table->items.empty() ? 0 : table->items[0].length;
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(lod_rank_table) {
  op.Doc("the sequences of X, longest first").Input("X").Output("Out", kOtherOnly).Attr("level", 0);
  op.AnyKernel(MakeTable);
}

HEDDLE_OP(max_sequence_len) {
  op.Doc("the length of a table's longest sequence")
      .Input("RankTable", kAnyKind | kOtherOnly)
      .Output("Out");
  op.AnyKernel(MaxLength);
}
