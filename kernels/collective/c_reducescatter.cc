// c_reducescatter and reduce_scatter: rank r gets the r-th part of the sum; alltoall and
// all_to_all: part s of rank r becomes part r of rank s.
#include "core/shapes.h"
#include "kernels/collective/collective.h"

namespace heddle {
namespace {

Status ReduceScatter(KernelContext& ctx) {
  const Tensor& in = ctx.In(OperandOf(ctx));
  Tensor& out = ctx.Out(ResultOf(ctx));
  return WithRanks(ctx, ctx.Int("nranks"), in, &out,
                   [&](Communicator& ranks, const RankCall& call) {
                     return ranks.ReduceScatter(call, Reduction::kSum, in, &out);
                   });
}

Status AllToAll(KernelContext& ctx) {
  const Tensor& in = ctx.In(OperandOf(ctx));
  return WithRanks(ctx, [&](Communicator& ranks, const RankCall& call) {
    HEDDLE_RETURN_IF_ERROR(Shorter(in.shape(), 0, ranks.size()).status());
    return ranks.AllToAll(call, in, &ctx.Out(ResultOf(ctx)));
  });
}

void DefineScattered(OpDef& op, const char* doc, const char* in, const char* out,
                     InferShapeFn shape) {
  op.Doc(doc).Input(in).Output(out).Attr("ring_id", 0).Traits(kCommunication).InferShape(shape);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(c_reducescatter) {
  DefineScattered(op, "Of nranks equal parts of the sum of all X the one with the rank's number.",
                  "X", "Out", PartShape);
  op.Attr("nranks", 1).Attr("use_calc_stream", false);
  ReducibleKernel(op, ReduceScatter);
}
HEDDLE_OP(reduce_scatter) {
  DefineScattered(op, "Of nranks equal parts of the sum of all x the one with the rank's number.",
                  "x", "out", PartShape);
  op.Attr("nranks", 1);
  ReducibleKernel(op, ReduceScatter);
}
HEDDLE_OP(alltoall) {
  DefineScattered(op, "Part s of rank r's X becomes part r of rank s's Out.", "X", "Out",
                  SameShape);
  op.Attr("use_calc_stream", false).AnyKernel(AllToAll);
}
HEDDLE_OP(all_to_all) {
  DefineScattered(op, "Part s of rank r's x becomes part r of rank s's out.", "x", "out",
                  SameShape);
  op.AnyKernel(AllToAll);
}
