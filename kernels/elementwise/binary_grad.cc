#include "kernels/elementwise/binary_grad.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "core/memory/watched_bytes.h"
#include "kernels/base/check.h"
#include "kernels/base/widen.h"

namespace heddle {
namespace {

const void* Move(const void* p, int64_t elements, uint32_t size) {
  return p == nullptr ? nullptr : static_cast<const std::byte*>(p) + elements * size;
}

// A row of a 16-bit type, in chunks that the wide loops compute.
void RunGradWide(const GradLoops& loops, InnerKind kind, const GradInputs& in, void* d, int64_t n,
                 double arg) {
  alignas(64) float wide[5][kWidenChunk];
  const WidenFn widen = Widening(loops.stored, DType::kF32);
  const auto take = [&](const void* from, bool used, bool moves, int64_t at, int64_t count,
                        float* to) -> const void* {
    if (!used) return nullptr;
    if (moves || at == 0) widen(Move(from, moves ? at : 0, loops.size), to, moves ? count : 1);
    return to;
  };
  for (int64_t at = 0; at < n; at += kWidenChunk) {
    const int64_t count = std::min(kWidenChunk, n - at);
    const GradInputs row{take(in.x, (loops.uses & kUsesX) != 0, kind != InnerKind::kScalarVector,
                              at, count, wide[0]),
                         take(in.y, (loops.uses & kUsesY) != 0, kind != InnerKind::kVectorScalar,
                              at, count, wide[1]),
                         take(in.out, (loops.uses & kUsesOut) != 0, true, at, count, wide[2]),
                         take(in.dout, true, true, at, count, wide[3])};
    loops.wide->fn[static_cast<int>(kind)](row, wide[4], count, arg);
    Narrowing(DType::kF32, loops.stored)(wide[4], static_cast<std::byte*>(d) + at * loops.size,
                                         count);
  }
}

void RunRow(const GradLoops& loops, InnerKind kind, const GradInputs& in, void* d, int64_t n,
            double arg) {
  if (loops.wide != nullptr) [[unlikely]]
    RunGradWide(loops, kind, in, d, n, arg);
  else
    loops.fn[static_cast<int>(kind)](in, d, n, arg);
}

void Elementwise(const KernelContext& ctx, const BroadcastPlan& plan, const GradLoops& loops,
                 const GradInputs& in, void* d, double arg) {
  if (plan.rank == 1 && plan.numel <= loops.grain) {
    if (plan.numel > 0) RunRow(loops, plan.inner, in, d, plan.numel, arg);
    return;
  }
  ParallelRows(ctx, plan, loops.grain, [&](int64_t x, int64_t y, int64_t out, int64_t n) {
    const GradInputs row{Move(in.x, x, loops.size), Move(in.y, y, loops.size),
                         Move(in.out, out, loops.size), Move(in.dout, out, loops.size)};
    RunRow(loops, plan.inner, row, static_cast<std::byte*>(d) + out * loops.size, n, arg);
  });
}

}  // namespace

void RunBinaryGrad(const KernelContext& ctx, const BroadcastPlan& plan, const GradLoops& loops,
                   const GradInputs& in, DType dtype, Tensor* d, bool of_x, double arg) {
  const bool full = of_x ? plan.x_is_full() : plan.y_is_full();
  const bool pass = loops.fn[0] == nullptr && loops.wide == nullptr;
  if (full) {
    if (!pass)
      Elementwise(ctx, plan, loops, in, d->mutable_raw(), arg);
    else if (d->raw() != in.dout && plan.numel > 0)
      WatchedMemcpy(d->mutable_raw(), in.dout, static_cast<size_t>(plan.numel) * loops.size);
    return;
  }
  const void* source = in.dout;
  Tensor scratch;
  if (!pass && plan.numel > 0) {
    scratch = ctx.Scratch(dtype, Shape{plan.numel});
    Elementwise(ctx, plan, loops, in, scratch.mutable_raw(), arg);
    source = scratch.raw();
  }
  RunReduce(ctx, MakeReducePlan(plan, of_x), *SumLoops(dtype), source, d->mutable_raw());
}

Status RunGradOp(KernelContext& ctx, const GradLoops& of_x, const GradLoops& of_y, bool uses_out) {
  const Tensor& dout = ctx.In("Out@GRAD");
  const Tensor& x = ctx.In("X");
  const Tensor& y = ctx.In("Y");
  Tensor* dx = ctx.OutOpt("X@GRAD");
  Tensor* dy = ctx.OutOpt("Y@GRAD");
  const DType dtype = dout.dtype();
  if (Status same = CheckDType(dtype, {&x, &y, dx, dy}); !same.ok()) [[unlikely]]
    return IsComplex(dtype) ? RunConverted(ctx, dtype) : same;
  BroadcastPlan local;
  HEDDLE_ASSIGN_OR_RETURN(const BroadcastPlan* plan, PlanOf<SlotsXY>(ctx, &local));
  if (dout.numel() != plan->numel)
    return InvalidArgument("input Out@GRAD has shape ", dout.shape().ToString(),
                           ", but X and Y give ", plan->numel, " elements");
  GradInputs in{x.raw(), y.raw(), nullptr, dout.raw()};
  if (uses_out) {
    const Tensor& out = ctx.In("Out");
    if (out.numel() != plan->numel || out.dtype() != dtype)
      return InvalidArgument("input Out does not look like Out@GRAD: ", out.shape().ToString());
    in.out = out.raw();
  }
  if (dy != nullptr) RunBinaryGrad(ctx, *plan, of_y, in, dtype, dy, false);
  if (dx != nullptr) RunBinaryGrad(ctx, *plan, of_x, in, dtype, dx, true);
  return Status::Ok();
}

void DefineGradSlots(OpDef& op, unsigned uses, bool has_axis) {
  op.Input("X", (uses & kUsesX) != 0 ? 0u : unsigned{kNoBuffer});
  op.Input("Y", (uses & kUsesY) != 0 ? 0u : unsigned{kNoBuffer});
  if ((uses & kUsesOut) != 0) op.Input("Out");
  op.Input("Out@GRAD").Output("X@GRAD", kOptional).Output("Y@GRAD", kOptional);
  if (has_axis) op.Attr("axis", -1);
  op.Inplace("Out@GRAD", "X@GRAD").KernelKey("Out@GRAD");
}

}  // namespace heddle
