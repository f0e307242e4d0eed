// barrier: no rank goes on before all have come.
#include "core/shapes.h"
#include "kernels/collective/collective.h"

namespace heddle {
namespace {

Status Barrier(KernelContext& ctx) {
  return WithRanks(ctx, [&](Communicator& ranks, const RankCall& call) {
    HEDDLE_RETURN_IF_ERROR(ranks.Barrier(call));
    CopyWhole(ctx, ctx.In("X"), &ctx.Out("Out"));
    return Status::Ok();
  });
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(barrier) {
  op.Doc("X, as soon as all ranks are here.").Input("X").Output("Out").Inplace("X", "Out");
  op.Attr("ring_id", 0).Traits(kCommunication).InferShape(SameShape).AnyKernel(Barrier);
}
