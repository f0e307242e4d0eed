// c_broadcast and broadcast: every rank gets what one has; c_scatter: each a part of it.
#include "core/shapes.h"
#include "kernels/collective/collective.h"

namespace heddle {
namespace {

Status Broadcast(KernelContext& ctx) {
  return WithRanks(ctx, [&](Communicator& ranks, const RankCall& call) {
    return ranks.Broadcast(call, ctx.Int("root"), ctx.In(OperandOf(ctx)), &ctx.Out(ResultOf(ctx)));
  });
}

Status Scatter(KernelContext& ctx) {
  const Tensor& in = ctx.In("X");
  Tensor& out = ctx.Out("Out");
  return WithRanks(ctx, ctx.Int("nranks"), in, &out,
                   [&](Communicator& ranks, const RankCall& call) {
                     return ranks.Scatter(call, ctx.Int("root"), in, &out);
                   });
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(c_broadcast) {
  op.Doc("The X of rank root.").Input("X").Output("Out").Inplace("X", "Out");
  op.Attr("ring_id", 0).Attr("root", 0).Attr("use_calc_stream", false);
  op.Traits(kCommunication).InferShape(SameShape).AnyKernel(Broadcast);
}
HEDDLE_OP(broadcast) {
  op.Doc("The x of rank root.").Input("x").Output("out").Inplace("x", "out");
  op.Attr("ring_id", 0).Attr("root", 0);
  op.Traits(kCommunication).InferShape(SameShape).AnyKernel(Broadcast);
}
HEDDLE_OP(c_scatter) {
  op.Doc("Of nranks equal parts of the X of rank root the one with the rank's number.");
  op.Input("X").Output("Out").Attr("ring_id", 0).Attr("root", 0).Attr("nranks", 0);
  op.Attr("use_calc_stream", false);
  op.Traits(kCommunication).InferShape(PartShape).AnyKernel(Scatter);
}
