// lod_tensor_to_array and array_to_lod_tensor: packed sequences as one tensor per time step, in the
// order of a rank table, and back.
#include <algorithm>

#include "core/interrupts.h"
#include "core/operands/slot_kinds.h"
#include "kernels/sequence/rank_table.h"
#include "kernels/sequence/sequence.h"

namespace heddle {
namespace {

// Item t of the array: step t of every sequence that has one, in the table's order.
Status ToArray(KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  HEDDLE_ASSIGN_OR_RETURN(const RankTable* table, RankTableOf(ctx));
  HEDDLE_RETURN_IF_ERROR(CheckAllLevels(x));
  const size_t level = table->outer.size();
  if (level >= x.lod().size() ||
      SequenceCount(x.lod()[level]) != static_cast<int64_t>(table->items.size()))
    return InvalidArgument("X does not hold the sequences that the table ranks");
  const Offsets& o = x.lod()[level];
  TensorArray array;
  for (int64_t t = 0; !table->items.empty() && t < table->items[0].length; ++t) {
    std::vector<RowSpan> spans;
    std::vector<std::vector<size_t>> lengths(x.lod().size() - level - 1);
    for (const auto& item : table->items) {
      if (t >= item.length) break;
      if (t >= Length(o, item.index)) return InvalidArgument("X has not the table's lengths");
      const int64_t at = Begin(o, item.index) + t;
      spans.push_back(RowSpanOf(x.lod(), level + 1, at, at + 1, &lengths));
    }
    JoinSpans(ctx, x, spans, lengths, array.emplace_back());
  }
  ctx.OutVar("Out")->mutable_array() = std::move(array);
  return Status::Ok();
}

// The way back: sequences in their own order.
Status FromArray(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const RankTable* table, RankTableOf(ctx));
  const Value* v = ctx.InVar("X");
  if (v == nullptr || !v->is_array() || !v->initialized() || v->array().empty())
    return InvalidArgument("'X' holds no array of steps");
  const TensorArray& array = v->array();
  std::vector<std::pair<RankTable::Item, int64_t>> order;  // with the rank
  for (size_t i = 0; i < table->items.size(); ++i)
    order.push_back({table->items[i], static_cast<int64_t>(i)});
  LookCount looks;
  std::sort(order.begin(), order.end(),
            looks.In([](const auto& a, const auto& b) { return a.first.index < b.first.index; }));
  const size_t deeper = array[0].lod().size();
  std::vector<std::vector<size_t>> lengths(deeper + 1);
  int64_t rows = 0;
  for (const Tensor& step : array) {
    HEDDLE_RETURN_IF_ERROR(CheckAllLevels(step));
    if (step.lod().size() != deeper || step.dtype() != array[0].dtype() ||
        RowBytes(step) != RowBytes(array[0]))
      return InvalidArgument("the steps of X differ in dtype, row or levels");
    rows += step.dim(0);
  }
  Shape shape = array[0].shape();
  shape[0] = rows;
  Tensor& out = ctx.Alloc("Out", array[0].dtype(), shape);
  int64_t at = 0;
  for (const auto& [item, rank] : order) {
    lengths[0].push_back(static_cast<size_t>(item.length));
    for (const int64_t t : Watched(item.length)) {
      if (t >= static_cast<int64_t>(array.size()))
        return InvalidArgument("X has ", array.size(), " steps, a sequence ", item.length);
      const Tensor& step = array[static_cast<size_t>(t)];
      const int64_t held = deeper == 0 ? step.dim(0) : SequenceCount(step.lod()[0]);
      if (rank >= held) return InvalidArgument("step ", t, " of X has only ", held, " sequences");
      std::vector<std::vector<size_t>> inner(deeper);
      const RowSpan s = RowSpanOf(step.lod(), 0, rank, rank + 1, &inner);
      for (size_t l = 0; l < deeper; ++l)
        lengths[l + 1].insert(lengths[l + 1].end(), inner[l].begin(), inner[l].end());
      if (at + s.end - s.begin > rows) return InvalidArgument("X has not the table's lengths");
      CopyRows(step, s.begin, s.end - s.begin, out, at);
      at += s.end - s.begin;
    }
  }
  if (at != rows) return InvalidArgument("X has not the table's lengths");
  LoD lod = table->outer;
  for (Offsets& o : LoDFromLengths(lengths)) lod.push_back(std::move(o));
  out.set_lod(std::move(lod));
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(lod_tensor_to_array) {
  op.Doc("sequences cut into an array of steps")
      .Input("X")
      .Input("RankTable", kAnyKind | kOtherOnly)
      .Output("Out", kArrayOnly);
  op.AnyKernel(ToArray);
}

HEDDLE_OP(array_to_lod_tensor) {
  op.Doc("an array of steps put together to sequences")
      .Input("X", kAnyKind | kArrayOnly)
      .Input("RankTable", kAnyKind | kOtherOnly);
  op.Output("Out").AnyKernel(FromArray);
}
