// Element-wise operators whose operands have types of their own, and those with any number of them.
#pragma once

#include "core/interrupts.h"
#include "kernels/base/broadcast.h"
#include "kernels/operands/operands.h"

namespace heddle {

// z = f(x, y) for every element of the broadcast; `z` may be x or y where those are not repeated.
template <typename X, typename Y, typename Z, typename F>
void ForEachPair(const KernelContext& ctx, const BroadcastPlan& plan, const X* x, const Y* y, Z* z,
                 F f) {
  const int64_t x_step = plan.inner == InnerKind::kScalarVector ? 0 : 1;
  const int64_t y_step = plan.inner == InnerKind::kVectorScalar ? 0 : 1;
  ParallelRows(ctx, plan, 8192, [&](int64_t xo, int64_t yo, int64_t zo, int64_t n) {
    for (const auto part : Stretches(n))
      for (int64_t i = part.begin; i < part.end; ++i)
        z[zo + i] = f(x[xo + i * x_step], y[yo + i * y_step]);
  });
}

// Shape function: `out` is the broadcast of `a` and `b`, in a's dtype.
inline Status BroadcastPair(ShapeContext& ctx, Key a, Key b, Key out) {
  const Shape &x = ctx.InShape(a), &y = ctx.InShape(b);
  if (!x.known_rank() || !y.known_rank()) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, BroadcastShape(x, y, -1));
  ctx.SetOut(out, shape, ctx.InDType(a));
  return Status::Ok();
}

}  // namespace heddle
