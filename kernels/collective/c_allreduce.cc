// c_allreduce_* and all_reduce: every rank gets what the ranks' operands give together; c_reduce_*
// and reduce: rank root_id does, and the others keep their own.
#include "core/shapes.h"
#include "kernels/collective/collective.h"

namespace heddle {
namespace {

Status AllReduceBy(KernelContext& ctx, Reduction how) {
  return WithRanks(ctx, [&](Communicator& ranks, const RankCall& call) {
    return ranks.AllReduce(call, how, ctx.In(OperandOf(ctx)), &ctx.Out(ResultOf(ctx)));
  });
}

Status ReduceBy(KernelContext& ctx, Reduction how) {
  return WithRanks(ctx, [&](Communicator& ranks, const RankCall& call) {
    return ranks.Reduce(call, how, ctx.Int("root_id"), ctx.In(OperandOf(ctx)),
                        &ctx.Out(ResultOf(ctx)));
  });
}

template <Reduction kHow>
Status AllReduce(KernelContext& ctx) {
  return AllReduceBy(ctx, kHow);
}

template <Reduction kHow>
Status Reduce(KernelContext& ctx) {
  return ReduceBy(ctx, kHow);
}

// As Paddle numbers them (phi::ReduceType).
Result<Reduction> ReductionOf(const KernelContext& ctx) {
  constexpr Reduction kTypes[] = {Reduction::kSum, Reduction::kMax, Reduction::kMin,
                                  Reduction::kProd, Reduction::kAvg};
  const int64_t type = ctx.Int("reduce_type");
  if (type >= 0 && type < static_cast<int64_t>(std::size(kTypes))) return kTypes[type];
  return Unimplemented("attribute reduce_type is ", type,
                       "; expected 0 (sum), 1 (max), 2 (min), 3 (prod) or 4 (avg)");
}

Status AllReduceOfType(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const Reduction how, ReductionOf(ctx));
  return AllReduceBy(ctx, how);
}

Status ReduceOfType(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const Reduction how, ReductionOf(ctx));
  return ReduceBy(ctx, how);
}

void DefineReduced(OpDef& op, const char* doc, const char* in, const char* out, KernelFn kernel) {
  op.Doc(doc).Input(in).Output(out).Inplace(in, out).Attr("ring_id", 0);
  op.Traits(kCommunication).InferShape(SameShape);
  ReducibleKernel(op, kernel);
}

template <Reduction kHow>
void DefineAllReduce(OpDef& op, const char* doc) {
  DefineReduced(op, doc, "X", "Out", AllReduce<kHow>);
  op.Attr("use_calc_stream", false).Attr("use_model_parallel", false);
}

template <Reduction kHow>
void DefineReduce(OpDef& op, const char* doc) {
  DefineReduced(op, doc, "X", "Out", Reduce<kHow>);
  op.Attr("root_id", 0).Attr("use_calc_stream", false);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(c_allreduce_sum) {
  DefineAllReduce<Reduction::kSum>(op, "The sum of all ranks' X, on every rank.");
  op.Input("Cond", kOptional);
}
HEDDLE_OP(c_allreduce_max) {
  DefineAllReduce<Reduction::kMax>(op, "The largest of all ranks' X, on every rank.");
}
HEDDLE_OP(c_allreduce_min) {
  DefineAllReduce<Reduction::kMin>(op, "The least of all ranks' X, on every rank.");
}
HEDDLE_OP(c_allreduce_prod) {
  DefineAllReduce<Reduction::kProd>(op, "The product of all ranks' X, on every rank.");
}
HEDDLE_OP(c_allreduce_avg) {
  DefineAllReduce<Reduction::kAvg>(op, "The mean of all ranks' X, on every rank.");
}
HEDDLE_OP(mp_allreduce_sum) {
  DefineAllReduce<Reduction::kSum>(op, "The sum of all ranks' X, on every rank.");
}
HEDDLE_OP(all_reduce) {
  DefineReduced(op, "What all ranks' x give together, on every rank.", "x", "out", AllReduceOfType);
  op.Attr("reduce_type", 0);
}
HEDDLE_OP(c_reduce_sum) {
  DefineReduce<Reduction::kSum>(op, "The sum of all ranks' X, on rank root_id.");
}
HEDDLE_OP(c_reduce_max) {
  DefineReduce<Reduction::kMax>(op, "The largest of all ranks' X, on rank root_id.");
}
HEDDLE_OP(c_reduce_min) {
  DefineReduce<Reduction::kMin>(op, "The least of all ranks' X, on rank root_id.");
}
HEDDLE_OP(c_reduce_prod) {
  DefineReduce<Reduction::kProd>(op, "The product of all ranks' X, on rank root_id.");
}
HEDDLE_OP(c_reduce_avg) {
  DefineReduce<Reduction::kAvg>(op, "The mean of all ranks' X, on rank root_id.");
}
HEDDLE_OP(reduce) {
  DefineReduced(op, "What all ranks' x give together, on rank root_id.", "x", "out", ReduceOfType);
  op.Attr("reduce_type", 0).Attr("root_id", 0);
}
