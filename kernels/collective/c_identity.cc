// Operators that tell Paddle's streams to wait for each other. Communication here is over when its
// operator ends, so that they hand their operands on: c_identity, c_sync_calc_stream,
// c_sync_comm_stream, c_wait_compute, c_wait_comm; and operators that are there for an order alone:
// depend, nop.
#include "core/shapes.h"
#include "kernels/collective/collective.h"

namespace heddle {
namespace {

Status Hand(KernelContext& ctx) {
  CopyWhole(ctx, ctx.In("X"), &ctx.Out("Out"));
  return Status::Ok();
}

Status ListShape(ShapeContext& ctx) {
  for (int i = 0; i < ctx.InCount("X") && i < ctx.OutCount("Out"); ++i)
    ctx.SetOut("Out", ctx.InShape("X", i), ctx.InDType("X", i), i);
  return Status::Ok();
}

Status HandAll(KernelContext& ctx) {
  for (int i = 0; i < ctx.InCount("X") && i < ctx.OutCount("Out"); ++i)
    CopyWhole(ctx, ctx.In("X", i), &ctx.Out("Out", i));
  return Status::Ok();
}

void DefineOne(OpDef& op) {
  op.Doc("X.").Input("X").Output("Out").View("X", "Out").InferShape(SameShape).AnyKernel(Hand);
}
void DefineList(OpDef& op) {
  op.Doc("Each of X.").Input("X", kList).Output("Out", kList).View("X", "Out").Attr("ring_id", 0);
  op.InferShape(ListShape).AnyKernel(HandAll);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(c_identity) {
  DefineOne(op);
  op.Attr("ring_id", 0).Attr("use_calc_stream", true).Attr("use_model_parallel", true);
}
HEDDLE_OP(c_sync_calc_stream) { DefineOne(op); }
HEDDLE_OP(c_sync_comm_stream) { DefineList(op); }
HEDDLE_OP(c_wait_compute) { DefineList(op); }
HEDDLE_OP(c_wait_comm) { DefineList(op); }
HEDDLE_OP(depend) {
  op.Doc("X, after all of Dep.").Input("X").Input("Dep", kList | kNoBuffer).Output("Out");
  op.View("X", "Out").KernelKey("X").InferShape(SameShape).AnyKernel(Hand);
}
HEDDLE_OP(nop) {
  op.Doc("Each of X.").Input("X", kList).Output("Out", kList).View("X", "Out");
  op.InferShape(ListShape).AnyKernel(HandAll);
}
