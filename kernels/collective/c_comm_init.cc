// Operators of startup programs, before they communicate. The executor brings its group of ranks,
// so that there is nothing to set up: c_comm_init and its like check that the program was made for
// this group, c_gen_nccl_id and its like give an id that nobody reads.
#include "core/operands/slot_kinds.h"
#include "kernels/collective/collective.h"

namespace heddle {
namespace {

// The rank in the file is that of the process it was written for; here all ranks may share a file.
Status Check(KernelContext& ctx, int64_t nranks) {
  const Communicator* ranks = CommunicatorOf(ctx.services());
  if (ranks == nullptr && nranks <= 1) return Status::Ok();
  return WithRanks(ctx, [&](Communicator& group, const RankCall&) {
    return nranks > 0 ? CheckCount(group, nranks) : Status::Ok();
  });
}

Status Init(KernelContext& ctx) { return Check(ctx, ctx.Int("nranks")); }
Status InitTrainers(KernelContext& ctx) { return Check(ctx, ctx.Int("ntrainers")); }
Status InitAll(KernelContext& ctx) {
  return Check(ctx, static_cast<int64_t>(ctx.IntList("devices").size()) <= 1 ? 1 : 0);
}
Status NoShape(ShapeContext&) { return Status::Ok(); }
Status Nothing(KernelContext&) { return Status::Ok(); }

void DefineId(OpDef& op) {
  op.Doc("Names a group of ranks; here a program need not.").Output("Out", kAnyKind | kTakesOther);
  op.Attr("rank", 0).Attr("endpoint", "").Attr("other_endpoints", Strings{}).Attr("ring_id", 0);
  op.AnyKernel(Nothing);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(c_comm_init) {
  op.Doc("Checks that the program was made for a group of as many ranks.");
  op.Input("X", kOptional | kAnyKind | kTakesOther)
      .Attr("nranks", 0)
      .Attr("rank", 0)
      .Attr("device_id", -1);
  op.Attr("ring_id", 0).Attr("endpoints", "");
  op.Traits(kCommunication).InferShape(NoShape).AnyKernel(Init);
}
HEDDLE_OP(c_comm_init_multitrainer) {
  op.Doc("Checks that the program was made for a group of as many ranks.");
  op.Input("X", kOptional | kAnyKind | kTakesOther).Attr("ntrainers", 0).Attr("trainer_id", 0);
  op.Attr("devices", Ints{}).Attr("ring_id", 0);
  op.Traits(kCommunication).InferShape(NoShape).AnyKernel(InitTrainers);
}
HEDDLE_OP(c_comm_init_all) {
  op.Doc("Checks that there is a group, if the program names several devices.");
  op.Attr("devices", Ints{}).Attr("ring_id", 0);
  op.Traits(kCommunication).InferShape(NoShape).AnyKernel(InitAll);
}
HEDDLE_OP(c_gen_nccl_id) { DefineId(op); }
HEDDLE_OP(c_gen_bkcl_id) { DefineId(op); }
HEDDLE_OP(c_gen_xccl_id) { DefineId(op); }
HEDDLE_OP(gen_nccl_id) {
  DefineId(op);
  op.Attr("trainers", Strings{}).Attr("trainer_id", 0).Attr("nccl_comm_num", 1);
  op.Attr("use_hierarchical_allreduce", false).Attr("hierarchical_allreduce_inter_nranks", -1);
}
