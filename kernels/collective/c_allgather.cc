// Every rank gets the operands of all: c_allgather and all_gather one behind the other, c_concat
// and dist_concat side by side along the last axis, partial_allgather each rank's stretch of one
// tensor. c_split takes what c_concat has joined apart again.
#include <cstring>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "core/shapes.h"
#include "kernels/collective/collective.h"

namespace heddle {
namespace {

template <int kAxis>
Status GatheredShape(ShapeContext& ctx) {
  const Key in = OperandOf(ctx);
  HEDDLE_RETURN_IF_ERROR(CheckNranks(ctx.Int("nranks")));
  HEDDLE_ASSIGN_OR_RETURN(const Shape all, Longer(ctx.InShape(in), kAxis, ctx.Int("nranks")));
  ctx.SetOut(ResultOf(ctx), all, ctx.InDType(in));
  return Status::Ok();
}

Status Gather(KernelContext& ctx) {
  const Tensor& in = ctx.In(OperandOf(ctx));
  Tensor& out = ctx.Out(ResultOf(ctx));
  return WithRanks(
      ctx, ctx.Int("nranks"), in, &out,
      [&](Communicator& ranks, const RankCall& call) { return ranks.AllGather(call, in, &out); });
}

// Rows of `row` bytes of each rank's operand, side by side.
Status Concat(KernelContext& ctx) {
  const Tensor& in = ctx.In(OperandOf(ctx));
  Tensor& out = ctx.Out(ResultOf(ctx));
  return WithRanks(
      ctx, ctx.Int("nranks"), in, &out, [&](Communicator& ranks, const RankCall& call) {
        const auto n = static_cast<int64_t>(ranks.size());
        Tensor all = ctx.Scratch(in.dtype(), Shape({n * in.numel()}));
        HEDDLE_RETURN_IF_ERROR(ranks.AllGather(call, in, &all));
        if (in.bytes() == 0) return Status::Ok();
        const auto row =
            static_cast<size_t>(in.shape()[in.shape().rank() - 1]) * SizeOf(in.dtype());
        const size_t rows = in.bytes() / row;
        auto* to = static_cast<std::byte*>(out.mutable_raw());
        const auto* from = static_cast<const std::byte*>(all.raw());
        for (const int64_t i : Watched(static_cast<int64_t>(rows)))
          for (size_t r = 0; r < static_cast<size_t>(n); ++r, to += row)
            WatchedMemcpy(to, from + r * in.bytes() + static_cast<size_t>(i) * row, row);
        return Status::Ok();
      });
}

Status CheckRank(const OpContext& ctx) {
  const int64_t nranks = ctx.Int("nranks"), rank = ctx.Int("rank");
  HEDDLE_RETURN_IF_ERROR(CheckNranks(nranks));
  if (rank >= 0 && rank < nranks) return Status::Ok();
  return InvalidArgument("attribute rank is ", rank, "; expected one from 0 to ", nranks - 1);
}

Status SplitShape(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckRank(ctx));
  HEDDLE_ASSIGN_OR_RETURN(const Shape part, Shorter(ctx.InShape("X"), -1, ctx.Int("nranks")));
  ctx.SetOut("Out", part, ctx.InDType("X"));
  return Status::Ok();
}

Status Split(KernelContext& ctx) {
  const Tensor& in = ctx.In("X");
  Tensor& out = ctx.Out("Out");
  if (out.bytes() == 0) return Status::Ok();
  const auto nranks = static_cast<size_t>(ctx.Int("nranks"));
  const auto rank = static_cast<size_t>(ctx.Int("rank"));
  const size_t row = static_cast<size_t>(out.shape()[out.shape().rank() - 1]) * SizeOf(in.dtype());
  const auto* from = static_cast<const std::byte*>(in.raw());
  auto* to = static_cast<std::byte*>(out.mutable_raw());
  for (const int64_t k : Watched(static_cast<int64_t>(out.bytes() / row))) {
    const auto i = static_cast<size_t>(k);
    WatchedMemcpy(to + i * row, from + (i * nranks + rank) * row, row);
  }
  return Status::Ok();
}

Status PartialShape(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckRank(ctx));
  return SameShape(ctx);
}

Status PartialGather(KernelContext& ctx) {
  const Tensor& in = ctx.In("X");
  Tensor& out = ctx.Out("Out");
  const int64_t nranks = ctx.Int("nranks");
  if (in.numel() % nranks != 0)
    return InvalidArgument("X must have a multiple of ", nranks, " elements; it is ",
                           in.shape().ToString());
  return WithRanks(ctx, nranks, in, &out, [&](Communicator& ranks, const RankCall& call) {
    return ranks.AllGather(call, CopyStretch(ctx, in, nranks, ctx.Int("rank")), &out);
  });
}

void DefineGathered(OpDef& op, const char* doc, const char* in, const char* out, InferShapeFn shape,
                    KernelFn kernel) {
  op.Doc(doc).Input(in).Output(out).Attr("ring_id", 0);
  op.Traits(kCommunication).InferShape(shape).AnyKernel(kernel);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(c_allgather) {
  DefineGathered(op, "All ranks' X, one behind the other.", "X", "Out", GatheredShape<0>, Gather);
  op.Attr("nranks", 1).Attr("use_calc_stream", false);
}
HEDDLE_OP(all_gather) {
  DefineGathered(op, "All ranks' x, one behind the other.", "x", "out", GatheredShape<0>, Gather);
  op.Attr("nranks", 0);
}
HEDDLE_OP(c_concat) {
  DefineGathered(op, "All ranks' X, side by side along the last axis.", "X", "Out",
                 GatheredShape<-1>, Concat);
  op.Attr("nranks", 1).Attr("rank", 0).Attr("use_calc_stream", true);
  op.Attr("use_model_parallel", true);
}
HEDDLE_OP(dist_concat) {
  DefineGathered(op, "All ranks' x, side by side along the last axis.", "x", "out",
                 GatheredShape<-1>, Concat);
  op.Attr("nranks", 1);
}
HEDDLE_OP(c_split) {
  op.Doc("The rank-th of nranks equal parts of X along the last axis.").Input("X").Output("Out");
  op.Attr("rank", 0).Attr("nranks", 1).Attr("ring_id", 0).Attr("use_calc_stream", false);
  op.Attr("use_model_parallel", true).InferShape(SplitShape).AnyKernel(Split);
}
HEDDLE_OP(partial_allgather) {
  DefineGathered(op, "Of all nranks equal stretches of X each from the rank whose number it has.",
                 "X", "Out", PartialShape, PartialGather);
  op.Attr("nranks", 1).Attr("rank", 0).Attr("use_calc_stream", false);
}
