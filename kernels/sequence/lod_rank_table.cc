// Sequences sorted by length, longest first, and tensors cut into steps by that order: what dynamic
// recurrent networks of older programs are made of.
#include <algorithm>
#include <any>

#include "kernels/sequence/sequence.h"

namespace heddle {
namespace {

struct RankTable {
  struct Item {
    int64_t index, length;
  };
  std::vector<Item> items;  // by falling length; equal ones in their order
  LoD outer;                // the levels above the one that was sorted
};

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

Result<const RankTable*> TableOf(const KernelContext& ctx) {
  Value* v = ctx.InVar("RankTable");
  const auto* table = v != nullptr && v->kind() == Value::Kind::kOther
                          ? std::any_cast<RankTable>(&v->mutable_other())
                          : nullptr;
  if (table == nullptr) return InvalidArgument("'RankTable' holds no table of ranks");
  return table;
}

Status MaxLength(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const RankTable* table, TableOf(ctx));
  *ctx.Alloc("Out", DType::kI64, {1}).mutable_data<int64_t>() =
      table->items.empty() ? 0 : table->items[0].length;
  return Status::Ok();
}

// The rows of X that sequence `i` of `level` spans, and the deeper levels' lengths on the way.
struct Span {
  int64_t begin, end;
};
Span RowsOf(const LoD& lod, size_t level, int64_t begin, int64_t end,
            std::vector<std::vector<size_t>>* lengths) {
  for (size_t l = level; l < lod.size(); ++l) {
    const Offsets& o = lod[l];
    for (int64_t i = begin; i < end; ++i)
      if (lengths) (*lengths)[l - level].push_back(static_cast<size_t>(Length(o, i)));
    begin = Begin(o, begin);
    end = Begin(o, end);
  }
  return {begin, end};
}

LoD FromLengths(const std::vector<std::vector<size_t>>& lengths) {
  LoD lod;
  for (const auto& level : lengths) {
    Offsets o{0};
    for (size_t n : level) o.push_back(o.back() + n);
    lod.push_back(std::move(o));
  }
  return lod;
}

// The spans of `x`, one after the other, as a tensor with these sequences.
Tensor& Joined(const KernelContext& ctx, const Tensor& x, const std::vector<Span>& spans,
               const std::vector<std::vector<size_t>>& lengths, Tensor& out) {
  int64_t rows = 0, at = 0;
  for (const Span& s : spans) rows += s.end - s.begin;
  Shape shape = x.shape();
  shape[0] = rows;
  out = ctx.Scratch(x.dtype(), shape);
  for (const Span& s : spans) {
    CopyRows(x, s.begin, s.end - s.begin, out, at);
    at += s.end - s.begin;
  }
  if (!lengths.empty()) out.set_lod(FromLengths(lengths));
  return out;
}

Status CheckAllLevels(const Tensor& x) {
  if (x.rank() < 1) return InvalidArgument("X must have at least one dimension");
  for (size_t l = 0; l < x.lod().size(); ++l)
    HEDDLE_RETURN_IF_ERROR(OffsetsOf(x, "X", static_cast<int>(l)).status());
  return Status::Ok();
}

// Item t of the array: step t of every sequence that has one, in the table's order.
Status ToArray(KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  HEDDLE_ASSIGN_OR_RETURN(const RankTable* table, TableOf(ctx));
  HEDDLE_RETURN_IF_ERROR(CheckAllLevels(x));
  const size_t level = table->outer.size();
  if (level >= x.lod().size() ||
      SequenceCount(x.lod()[level]) != static_cast<int64_t>(table->items.size()))
    return InvalidArgument("X does not hold the sequences that the table ranks");
  const Offsets& o = x.lod()[level];
  TensorArray array;
  for (int64_t t = 0; !table->items.empty() && t < table->items[0].length; ++t) {
    std::vector<Span> spans;
    std::vector<std::vector<size_t>> lengths(x.lod().size() - level - 1);
    for (const auto& item : table->items) {
      if (t >= item.length) break;
      if (t >= Length(o, item.index)) return InvalidArgument("X has not the table's lengths");
      const int64_t at = Begin(o, item.index) + t;
      spans.push_back(RowsOf(x.lod(), level + 1, at, at + 1, &lengths));
    }
    Joined(ctx, x, spans, lengths, array.emplace_back());
  }
  ctx.OutVar("Out")->mutable_array() = std::move(array);
  return Status::Ok();
}

// The way back: sequences in their own order.
Status FromArray(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const RankTable* table, TableOf(ctx));
  const Value* v = ctx.InVar("X");
  if (v == nullptr || !v->is_array() || !v->initialized() || v->array().empty())
    return InvalidArgument("'X' holds no array of steps");
  const TensorArray& array = v->array();
  std::vector<std::pair<RankTable::Item, int64_t>> order;  // with the rank
  for (size_t i = 0; i < table->items.size(); ++i)
    order.push_back({table->items[i], static_cast<int64_t>(i)});
  std::sort(order.begin(), order.end(),
            [](const auto& a, const auto& b) { return a.first.index < b.first.index; });
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
    for (int64_t t = 0; t < item.length; ++t) {
      if (t >= static_cast<int64_t>(array.size()))
        return InvalidArgument("X has ", array.size(), " steps, a sequence ", item.length);
      const Tensor& step = array[static_cast<size_t>(t)];
      const int64_t held = deeper == 0 ? step.dim(0) : SequenceCount(step.lod()[0]);
      if (rank >= held) return InvalidArgument("step ", t, " of X has only ", held, " sequences");
      std::vector<std::vector<size_t>> inner(deeper);
      const Span s = RowsOf(step.lod(), 0, rank, rank + 1, &inner);
      for (size_t l = 0; l < deeper; ++l)
        lengths[l + 1].insert(lengths[l + 1].end(), inner[l].begin(), inner[l].end());
      if (at + s.end - s.begin > rows) return InvalidArgument("X has not the table's lengths");
      CopyRows(step, s.begin, s.end - s.begin, out, at);
      at += s.end - s.begin;
    }
  }
  if (at != rows) return InvalidArgument("X has not the table's lengths");
  LoD lod = table->outer;
  for (Offsets& o : FromLengths(lengths)) lod.push_back(std::move(o));
  out.set_lod(std::move(lod));
  return Status::Ok();
}

// Sequences (or, without any, rows) in the table's order, or from that order back.
template <bool kBack>
Status Reorder(KernelContext& ctx) {
  const Tensor& x = ctx.In(kBack ? Key("Out@GRAD") : Key("X"));
  HEDDLE_ASSIGN_OR_RETURN(const RankTable* table, TableOf(ctx));
  HEDDLE_RETURN_IF_ERROR(CheckAllLevels(x));
  const auto n = static_cast<int64_t>(table->items.size());
  if ((x.lod().empty() ? x.dim(0) : SequenceCount(x.lod()[0])) != n)
    return InvalidArgument("X does not hold as many sequences as the table, ", n);
  std::vector<int64_t> order(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    const int64_t index = table->items[static_cast<size_t>(i)].index;
    order[static_cast<size_t>(kBack ? index : i)] = kBack ? i : index;
  }
  std::vector<Span> spans;
  std::vector<std::vector<size_t>> lengths(x.lod().size());
  for (const int64_t i : order) spans.push_back(RowsOf(x.lod(), 0, i, i + 1, &lengths));
  Tensor hold;
  Joined(ctx, x, spans, lengths, hold);
  Tensor& out = ctx.Alloc(kBack ? Key("X@GRAD") : Key("Out"), x.dtype(), hold.shape());
  CopyRows(hold, 0, hold.dim(0), out, 0);
  if (hold.has_lod()) out.set_lod(hold.lod());
  return Status::Ok();
}

// The states of the sequences that still run at step I.
Status Shrink(KernelContext& ctx) {
  const Tensor &x = ctx.In("X"), &step = ctx.In("I");
  HEDDLE_ASSIGN_OR_RETURN(const RankTable* table, TableOf(ctx));
  if (step.dtype() != DType::kI64 || step.numel() != 1)
    return InvalidArgument("'I' must be one int64");
  HEDDLE_RETURN_IF_ERROR(CheckAllLevels(x));
  const int64_t at = *step.data<int64_t>();
  int64_t running = 0;
  for (const auto& item : table->items) running += item.length > at;
  if (running > (x.lod().empty() ? x.dim(0) : SequenceCount(x.lod()[0])))
    return InvalidArgument("X ", x.shape().ToString(), " holds fewer than ", running, " states");
  std::vector<std::vector<size_t>> lengths(x.lod().size());
  const Span s = RowsOf(x.lod(), 0, 0, running, &lengths);
  Shape shape = x.shape();
  shape[0] = s.end - s.begin;
  Tensor& out = ctx.Alloc("Out", x.dtype(), shape);
  CopyRows(x, s.begin, shape[0], out, 0);
  if (!lengths.empty()) out.set_lod(FromLengths(lengths));
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

HEDDLE_OP(lod_rank_table) {
  op.Doc("the sequences of X, longest first").Input("X").Output("Out").Attr("level", 0);
  op.AnyKernel(MakeTable);
}
HEDDLE_OP(max_sequence_len) {
  op.Doc("the length of a table's longest sequence").Input("RankTable").Output("Out");
  op.AnyKernel(MaxLength);
}
HEDDLE_OP(lod_tensor_to_array) {
  op.Doc("sequences cut into an array of steps").Input("X").Input("RankTable").Output("Out");
  op.AnyKernel(ToArray);
}
HEDDLE_OP(array_to_lod_tensor) {
  op.Doc("an array of steps put together to sequences").Input("X").Input("RankTable");
  op.Output("Out").AnyKernel(FromArray);
}
HEDDLE_OP(reorder_lod_tensor_by_rank) {
  op.Doc("sequences in a table's order").Input("X").Input("RankTable").Output("Out");
  op.AnyKernel(Reorder<false>);
}
HEDDLE_OP(reorder_lod_tensor_by_rank_grad) {
  op.Input("X", kOptional | kNoBuffer).Input("RankTable").Input("Out@GRAD").Output("X@GRAD");
  op.AnyKernel(Reorder<true>);
}
HEDDLE_OP(shrink_rnn_memory) {
  op.Doc("the states of the sequences that still run at step I");
  op.Input("X").Input("RankTable").Input("I").Output("Out").AnyKernel(Shrink);
}
HEDDLE_OP(shrink_rnn_memory_grad) {
  op.Input("X").Input("Out@GRAD", kOptional).Output("X@GRAD").AnyKernel(ShrinkGrad);
}

HEDDLE_EXAMPLES(lod_rank_table, R"(
example its longest sequence and its order
in x float32 [6, 1] lod [[0, 1, 4, 6]] 1 2 3 4 5 6
var t rank_table
op lod_rank_table X=x -> Out=t
op max_sequence_len RankTable=t -> Out=n
op reorder_lod_tensor_by_rank X=x RankTable=t -> Out=y
out n int64 [1] 3
out y float32 [6, 1] lod [[0, 3, 5, 6]] 2 3 4 5 6 1
)")

HEDDLE_EXAMPLES(max_sequence_len, R"(
example three sequences
in x float32 [6, 1] lod [[0, 1, 4, 6]] 1 2 3 4 5 6
var t rank_table
op lod_rank_table X=x -> Out=t
op max_sequence_len RankTable=t -> Out=n
out n int64 [1] 3
)")

HEDDLE_EXAMPLES(lod_tensor_to_array, R"(
example three sequences
in x float32 [6, 1] lod [[0, 1, 4, 6]] 1 2 3 4 5 6
var t rank_table
op lod_rank_table X=x -> Out=t
var a tensor_array float32
op lod_tensor_to_array X=x RankTable=t -> Out=a
out a array 3
item float32 [3, 1] 2 5 1
item float32 [2, 1] 3 6
item float32 [1, 1] 4
)")

HEDDLE_EXAMPLES(array_to_lod_tensor, R"(
example there and back
in x float32 [6, 1] lod [[0, 1, 4, 6]] 1 2 3 4 5 6
var t rank_table
op lod_rank_table X=x -> Out=t
var a tensor_array float32
op lod_tensor_to_array X=x RankTable=t -> Out=a
op array_to_lod_tensor X=a RankTable=t -> Out=y
out y float32 [6, 1] lod [[0, 1, 4, 6]] 1 2 3 4 5 6
)")

HEDDLE_EXAMPLES(reorder_lod_tensor_by_rank, R"(
example sequences
in x float32 [6, 1] lod [[0, 1, 4, 6]] 1 2 3 4 5 6
var t rank_table
op lod_rank_table X=x -> Out=t
op reorder_lod_tensor_by_rank X=x RankTable=t -> Out=y
out y float32 [6, 1] lod [[0, 3, 5, 6]] 2 3 4 5 6 1

example rows
in x float32 [6, 1] lod [[0, 1, 4, 6]] 1 2 3 4 5 6
var t rank_table
op lod_rank_table X=x -> Out=t
in r float32 [3, 2] 1 2 3 4 5 6
op reorder_lod_tensor_by_rank X=r RankTable=t -> Out=y
out y float32 [3, 2] 3 4 5 6 1 2
)")

HEDDLE_EXAMPLES(reorder_lod_tensor_by_rank_grad, R"(
example rows
gradient none: the operator reads a rank table, which only programs can make
in x float32 [6, 1] lod [[0, 1, 4, 6]] 1 2 3 4 5 6
in r float32 [3, 2] 1 2 3 4 5 6
in g float32 [3, 2] 1 2 3 4 5 6
in back int64 [3] 2 0 1
from gather X=g Index=back -> Out=y
out y float32 [3, 2] 5 6 1 2 3 4
var t rank_table
op lod_rank_table X=x -> Out=t
op reorder_lod_tensor_by_rank_grad X=r RankTable=t Out@GRAD=g -> X@GRAD=y
)")

HEDDLE_EXAMPLES(shrink_rnn_memory, R"(
example step 0
in x float32 [6, 1] lod [[0, 1, 4, 6]] 1 2 3 4 5 6
var t rank_table
op lod_rank_table X=x -> Out=t
in m float32 [3, 2] 1 2 3 4 5 6
in i int64 [1] 0
op shrink_rnn_memory X=m RankTable=t I=i -> Out=y
out y float32 [3, 2] 1 2 3 4 5 6

example step 1
in x float32 [6, 1] lod [[0, 1, 4, 6]] 1 2 3 4 5 6
var t rank_table
op lod_rank_table X=x -> Out=t
in m float32 [3, 2] 1 2 3 4 5 6
in i int64 [1] 1
op shrink_rnn_memory X=m RankTable=t I=i -> Out=y
out y float32 [2, 2] 1 2 3 4

example step 2
in x float32 [6, 1] lod [[0, 1, 4, 6]] 1 2 3 4 5 6
var t rank_table
op lod_rank_table X=x -> Out=t
in m float32 [3, 2] 1 2 3 4 5 6
in i int64 [1] 2
op shrink_rnn_memory X=m RankTable=t I=i -> Out=y
out y float32 [1, 2] 1 2
)")

HEDDLE_EXAMPLES(shrink_rnn_memory_grad, R"(
example two of three run on
gradient none: shrink_rnn_memory reads a rank table, which only programs can make
in X float32 [3, 2] 0.85 -0.23 -0.63 0.12 -0.42 0.05
in Out@GRAD float32 [2, 2] -0.37 -0.89 -0.02 0.57
out X@GRAD float32 [3, 2] -0.37 -0.89 -0.02 0.57 0 0

example float64
gradient none: shrink_rnn_memory reads a rank table, which only programs can make
in X float64 [2, 2] -0.12 0.09 0.73 0.17
in Out@GRAD float64 [1, 2] -0.78 0.84
out X@GRAD float64 [2, 2] -0.78 0.84 0 0
)")
