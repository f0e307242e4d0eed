// Code that communication operators share: the run's communicator, operands, and shapes.
#pragma once

#include "core/error.h"
#include "core/kernel_context.h"
#include "core/shape_context.h"
#include "ranks/communicator.h"

namespace heddle {

// The first input and the first output: operators of Paddle 2 call them X and Out, newer ones x and
// out.
inline Key OperandOf(const OpContext& ctx) {
  return ctx.def().inputs()[0].key == Key("X").hash ? Key("X") : Key("x");
}
inline Key ResultOf(const OpContext& ctx) {
  return ctx.def().outputs()[0].key == Key("Out").hash ? Key("Out") : Key("out");
}
// The kernel serves all dtypes that ranks can reduce.
void ReducibleKernel(OpDef& op, KernelFn kernel);

// Copies contents; the tensors may be one.
void CopyWhole(const KernelContext& ctx, const Tensor& from, Tensor* to);
// The program was made for as many ranks as there are.
Status CheckCount(const Communicator& ranks, int64_t nranks);
// The attribute nranks is positive.
Status CheckNranks(int64_t nranks);

// Calls fn(communicator, call) for the operator's ring, whose ranks the communicator counts.
template <typename Fn>
Status WithRanks(KernelContext& ctx, Fn&& fn) {
  Communicator* ranks = CommunicatorOf(ctx.services());
  if (ranks == nullptr)
    return InvalidArgument(
        "exchanges values with other ranks, and the executor is none of a group's (see "
        "ExecutorOptions::communicator; of one rank, NewRanks(1) makes a group)");
  const int64_t ring = ctx.Int("ring_id");
  Communicator* members = ranks->Ring(ring);
  if (members == nullptr)
    return InvalidArgument("is for ring ", ring, ", and rank ", ranks->rank(), " is not in it");
  const auto interrupted = [&ctx] { return ctx.Interrupted(); };
  return fn(*members, RankCall{ctx.def().name(), ring, interrupted});
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

// Shapes with one dimension `times` as long, or 1 / `by` as long; an error where that leaves a rest
// or has more elements than can be stored. Negative axes count from the end.
Result<Shape> Longer(const Shape& shape, int axis, int64_t times);
Result<Shape> Shorter(const Shape& shape, int axis, int64_t by);
// Shape function: the result is one of `nranks` equal parts of the operand along the first axis.
Status PartShape(ShapeContext& ctx);

// The `at`-th of `count` equal stretches of a tensor's elements, a copy of one dimension.
// Precondition: there are such.
Tensor CopyStretch(const KernelContext& ctx, const Tensor& whole, int64_t count, int64_t at);

}  // namespace heddle
