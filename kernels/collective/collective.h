// What communication operators share: the run's communicator, and shapes. The operators with the
// names of Paddle 2 have slots X and Out, those with newer names x and out.
#pragma once

#include "core/error.h"
#include "core/op_context.h"
#include "ranks/communicator.h"

namespace heddle {

// Copies contents; the tensors may be one.
void CopyWhole(const KernelContext& ctx, const Tensor& from, Tensor* to);
// The program was made for as many ranks as there are.
Status CheckCount(const Communicator& ranks, int64_t nranks);
// The attribute nranks is positive.
Status CheckNranks(int64_t nranks);

// Calls fn(communicator, call) for the operator's ring.
template <typename Fn>
Status WithRanks(KernelContext& ctx, Fn&& fn) {
  Communicator* ranks = CommunicatorOf(ctx.services());
  if (ranks == nullptr)
    return InvalidArgument(
        "exchanges values with other ranks, and the executor is none of a group's (see "
        "ExecutorOptions::communicator; of one rank, NewRanks(1) makes a group)");
  const auto interrupted = [&ctx] { return ctx.Interrupted(); };
  return fn(*ranks, RankCall{ctx.def().name(), ctx.Int("ring_id"), interrupted});
}

// The same for operators whose attribute says how many ranks there are. Of one, there need not be a
// group: then the output has the bytes of the input.
template <typename Fn>
Status WithRanks(KernelContext& ctx, int64_t nranks, const Tensor& in, Tensor* out, Fn&& fn) {
  if (nranks == 1 && CommunicatorOf(ctx.services()) == nullptr) {
    CopyWhole(ctx, in, out);
    return Status::Ok();
  }
  return WithRanks(ctx, [&](Communicator& ranks, const RankCall& call) {
    HEDDLE_RETURN_IF_ERROR(CheckCount(ranks, nranks));
    return fn(ranks, call);
  });
}

// Shapes of dimensions that are `times` as long, or 1 / `by` as long; an error where that leaves a
// rest. Negative axes count from the end.
Result<Shape> Longer(const Shape& shape, int axis, int64_t times);
Result<Shape> Shorter(const Shape& shape, int axis, int64_t by);

}  // namespace heddle
