// Rows for experts that are spread over ranks: global_scatter sends each rank's rows to the
// experts, global_gather back. Of the counts, element r * experts + e is about expert e of rank r.
#include <vector>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/collective/collective.h"

namespace heddle {
namespace {

// A rank's counts of rows, and how many there are in all.
struct Counts {
  const int64_t* of = nullptr;
  int64_t total = 0;
};

Result<Counts> ReadCounts(const Tensor& t, const char* name, int64_t ranks) {
  if (t.dtype() != DType::kI64 || t.rank() != 1)
    return InvalidArgument("'", name, "' is ", Name(t.dtype()), " ", t.shape().ToString(),
                           "; a vector of int64 is expected");
  if (t.numel() % ranks != 0)
    return InvalidArgument("'", name, "' has ", t.numel(), " counts; a multiple of the ", ranks,
                           " ranks is expected");
  Counts made{t.data<int64_t>(), 0};
  for (int64_t i = 0; i < t.numel(); ++i) {
    if (made.of[i] < 0 || made.of[i] > (int64_t{1} << 40))
      return InvalidArgument("'", name, "' says ", made.of[i], " rows");
    made.total += made.of[i];
  }
  return made;
}

Status RowShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank()) return ctx.Defer();
  if (x.rank() != 2)
    return InvalidArgument("'X' has the shape ", x.ToString(), "; a matrix is expected");
  ctx.SetOut("Out", Shape{-1, x[1]}, ctx.InDType("X"));
  return Status::Ok();
}

// Rows [from, from + count) of a matrix, a view.
Tensor RowsOf(const Tensor& matrix, int64_t from, int64_t count) {
  const int64_t width = matrix.dim(1);
  auto* data = static_cast<std::byte*>(const_cast<void*>(matrix.raw()));
  const auto row = static_cast<size_t>(width) * SizeOf(matrix.dtype());
  return Tensor::Wrap(data + static_cast<size_t>(from) * row, matrix.dtype(), {count, width});
}

void PutRows(const KernelContext& ctx, const Tensor& rows, int64_t at, Tensor* out) {
  if (rows.bytes() == 0) return;
  Tensor to = RowsOf(*out, at, rows.dim(0));
  CopyWhole(ctx, rows, &to);
}

// Rows of this rank go through without messages.
class Exchange {
 public:
  Exchange(KernelContext& ctx, Communicator& ranks, const RankCall& call)
      : ctx_(ctx), ranks_(ranks), call_(call) {}

  Status Give(int64_t peer, const Tensor& rows) {
    if (peer != ranks_.rank()) return ranks_.Send(call_, peer, rows);
    own_ = rows;
    return Status::Ok();
  }
  Status Take(int64_t peer, int64_t count, int64_t at, Tensor* out) {
    Tensor rows = own_;
    if (peer != ranks_.rank()) {
      HEDDLE_ASSIGN_OR_RETURN(rows, ranks_.Receive(call_, peer));
    }
    if (rows.dtype() != out->dtype() || rows.rank() != 2 || rows.dim(0) != count ||
        rows.dim(1) != out->dim(1))
      return InvalidArgument("rank ", peer, " gives ", Name(rows.dtype()), " ",
                             rows.shape().ToString(), " where this one expects ", count,
                             " rows of ", out->dim(1), " ", Name(out->dtype()));
    PutRows(ctx_, rows, at, out);
    return Status::Ok();
  }

 private:
  KernelContext& ctx_;
  Communicator& ranks_;
  const RankCall& call_;
  Tensor own_;
};

// What is scattered lies by rank, then by expert, and what it becomes by expert, then by rank; what
// is gathered the other way round. A message without rows is none.
Status Exchanged(KernelContext& ctx, bool scatters) {
  const Tensor &x = ctx.In("X"), &local = ctx.In("local_count"), &global = ctx.In("global_count");
  return WithRanks(ctx, [&](Communicator& ranks, const RankCall& call) -> Status {
    const int64_t n = ranks.size();
    HEDDLE_ASSIGN_OR_RETURN(const Counts mine, ReadCounts(local, "local_count", n));
    HEDDLE_ASSIGN_OR_RETURN(const Counts theirs, ReadCounts(global, "global_count", n));
    if (local.numel() != global.numel())
      return InvalidArgument("'local_count' has ", local.numel(), " counts, 'global_count' ",
                             global.numel());
    const Counts& sent = scatters ? mine : theirs;
    const Counts& taken = scatters ? theirs : mine;
    if (sent.total > x.dim(0))
      return InvalidArgument("the counts say ", sent.total, " rows; 'X' has ", x.dim(0));
    Tensor& out = ctx.Alloc("Out", x.dtype(), {taken.total, x.dim(1)});
    const int64_t experts = local.numel() / n;
    // Where the rows of each rank and expert begin in the tensor that lies by rank.
    std::vector<int64_t> by_rank(static_cast<size_t>(local.numel()) + 1, 0);
    for (int64_t i = 0; i < local.numel(); ++i)
      by_rank[static_cast<size_t>(i) + 1] = by_rank[static_cast<size_t>(i)] + mine.of[i];
    Exchange exchange(ctx, ranks, call);
    int64_t by_expert = 0;
    for (int64_t e = 0; e < experts; ++e) {
      int64_t at = by_expert;
      for (int64_t r = 0; r < n; ++r) {
        const int64_t k = r * experts + e;
        const int64_t from = scatters ? by_rank[static_cast<size_t>(k)] : at;
        if (sent.of[k] > 0) HEDDLE_RETURN_IF_ERROR(exchange.Give(r, RowsOf(x, from, sent.of[k])));
        at += theirs.of[k];
      }
      at = by_expert;
      for (int64_t r = 0; r < n; ++r) {
        const int64_t k = r * experts + e;
        const int64_t to = scatters ? at : by_rank[static_cast<size_t>(k)];
        if (taken.of[k] > 0) HEDDLE_RETURN_IF_ERROR(exchange.Take(r, taken.of[k], to, &out));
        at += theirs.of[k];
      }
      by_expert = at;
    }
    return Status::Ok();
  });
}

Status ScatterRows(KernelContext& ctx) { return Exchanged(ctx, true); }
Status GatherBack(KernelContext& ctx) { return Exchanged(ctx, false); }

void DefineExchange(OpDef& op, const char* doc, KernelFn kernel) {
  op.Doc(doc).Input("X").Input("local_count").Input("global_count").Output("Out");
  op.Attr("ring_id", 0).Attr("use_calc_stream", false).Traits(kCommunication);
  op.KernelKey("X").InferShape(RowShape).AnyKernel(kernel);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(global_scatter) {
  DefineExchange(
      op,
      "local_count[r * experts + e] rows of X, in this order, to expert e of rank r; Out: "
      "the rows for this rank's experts, by expert, then by rank, global_count of them",
      ScatterRows);
}
HEDDLE_OP(global_gather) {
  DefineExchange(op,
                 "the rows that global_scatter sent with the same counts, back in their order; X: "
                 "those of this rank's experts",
                 GatherBack);
}
