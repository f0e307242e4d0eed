#include "kernels/elementwise/binary_grad.h"

#include <cstring>

#include "core/error.h"
#include "kernels/base/check.h"

namespace heddle {
namespace {

const void* Move(const void* p, int64_t elements, uint32_t size) {
  return p == nullptr ? nullptr : static_cast<const std::byte*>(p) + elements * size;
}

void Elementwise(const KernelContext& ctx, const BroadcastPlan& plan, const GradLoops& loops,
                 const GradInputs& in, void* d, double arg) {
  const auto fn = loops.fn[static_cast<int>(plan.inner)];
  if (plan.rank == 1 && plan.numel <= loops.grain) {
    if (plan.numel > 0) fn(in, d, plan.numel, arg);
    return;
  }
  ParallelRows(ctx, plan, loops.grain, [&](int64_t x, int64_t y, int64_t out, int64_t n) {
    const GradInputs row{Move(in.x, x, loops.size), Move(in.y, y, loops.size),
                         Move(in.out, out, loops.size), Move(in.dout, out, loops.size)};
    fn(row, static_cast<std::byte*>(d) + out * loops.size, n, arg);
  });
}

}  // namespace

void RunBinaryGrad(const KernelContext& ctx, const BroadcastPlan& plan, const GradLoops& loops,
                   const GradInputs& in, DType dtype, Tensor* d, bool of_x, double arg) {
  const bool full = of_x ? plan.x_is_full() : plan.y_is_full();
  const bool pass = loops.fn[0] == nullptr;
  if (full) {
    if (!pass)
      Elementwise(ctx, plan, loops, in, d->mutable_raw(), arg);
    else if (d->raw() != in.dout && plan.numel > 0)
      std::memcpy(d->mutable_raw(), in.dout, static_cast<size_t>(plan.numel) * loops.size);
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
