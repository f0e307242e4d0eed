// c_reducescatter and reduce_scatter: rank r gets the r-th part of the sum; alltoall and
// all_to_all: part s of rank r becomes part r of rank s.
#include "core/shapes.h"
#include "kernels/collective/collective.h"

namespace heddle {
namespace {

Status OldShape(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckNranks(ctx.Int("nranks")));
  HEDDLE_ASSIGN_OR_RETURN(const Shape part, Shorter(ctx.InShape("X"), 0, ctx.Int("nranks")));
  ctx.SetOut("Out", part, ctx.InDType("X"));
  return Status::Ok();
}
Status NewShape(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckNranks(ctx.Int("nranks")));
  HEDDLE_ASSIGN_OR_RETURN(const Shape part, Shorter(ctx.InShape("x"), 0, ctx.Int("nranks")));
  ctx.SetOut("out", part, ctx.InDType("x"));
  return Status::Ok();
}

Status ReduceScatter(KernelContext& ctx, const Tensor& in, Tensor* out) {
  return WithRanks(ctx, ctx.Int("nranks"), in, out, [&](Communicator& ranks, const RankCall& call) {
    return ranks.ReduceScatter(call, Reduction::kSum, in, out);
  });
}
Status OldReduceScatter(KernelContext& ctx) {
  return ReduceScatter(ctx, ctx.In("X"), &ctx.Out("Out"));
}
Status NewReduceScatter(KernelContext& ctx) {
  return ReduceScatter(ctx, ctx.In("x"), &ctx.Out("out"));
}

Status AllToAll(KernelContext& ctx, const Tensor& in, Tensor* out) {
  return WithRanks(ctx, [&](Communicator& ranks, const RankCall& call) {
    HEDDLE_RETURN_IF_ERROR(Shorter(in.shape(), 0, ranks.size()).status());
    return ranks.AllToAll(call, in, out);
  });
}
Status OldAllToAll(KernelContext& ctx) { return AllToAll(ctx, ctx.In("X"), &ctx.Out("Out")); }
Status NewAllToAll(KernelContext& ctx) { return AllToAll(ctx, ctx.In("x"), &ctx.Out("out")); }

void DefineScattered(OpDef& op, const char* doc, const char* in, const char* out,
                     InferShapeFn shape) {
  op.Doc(doc).Input(in).Output(out).Attr("ring_id", 0).Traits(kCommunication).InferShape(shape);
}

void Summable(OpDef& op, KernelFn kernel) {
  op.Kernel({DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kI8, DType::kU8,
             DType::kI16, DType::kI32, DType::kI64},
            kernel);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(c_reducescatter) {
  DefineScattered(op, "Of nranks equal parts of the sum of all X the one with the rank's number.",
                  "X", "Out", OldShape);
  op.Attr("nranks", 1).Attr("use_calc_stream", false);
  Summable(op, OldReduceScatter);
}
HEDDLE_OP(reduce_scatter) {
  DefineScattered(op, "Of nranks equal parts of the sum of all x the one with the rank's number.",
                  "x", "out", NewShape);
  op.Attr("nranks", 1);
  Summable(op, NewReduceScatter);
}
HEDDLE_OP(alltoall) {
  DefineScattered(op, "Part s of rank r's X becomes part r of rank s's Out.", "X", "Out",
                  SameShape);
  op.Attr("use_calc_stream", false).AnyKernel(OldAllToAll);
}
HEDDLE_OP(all_to_all) {
  DefineScattered(op, "Part s of rank r's x becomes part r of rank s's out.", "x", "out",
                  SameShape);
  op.AnyKernel(NewAllToAll);
}

HEDDLE_EXAMPLES(c_reducescatter, R"(
example a group of one rank
attr nranks INT 1
in X float32 [2, 3] -1.5 0 2 0.25 -3 7
from assign X=X -> Out=Out
out Out float32 [2, 3] -1.5 0 2 0.25 -3 7
)")

HEDDLE_EXAMPLES(reduce_scatter, R"(
example a group of one rank
attr nranks INT 1
in x float32 [2, 3] -1.5 0 2 0.25 -3 7
from assign X=x -> Out=out
out out float32 [2, 3] -1.5 0 2 0.25 -3 7
)")

HEDDLE_EXAMPLES(alltoall, R"(
example a group of one rank
in X float32 [2, 3] -1.5 0 2 0.25 -3 7
from assign X=X -> Out=Out
out Out float32 [2, 3] -1.5 0 2 0.25 -3 7
)")

HEDDLE_EXAMPLES(all_to_all, R"(
example a group of one rank
in x float32 [2, 3] -1.5 0 2 0.25 -3 7
from assign X=x -> Out=out
out out float32 [2, 3] -1.5 0 2 0.25 -3 7
)")
