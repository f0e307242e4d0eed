// Element-wise kernels of one operand and their gradients, by the operator's Element.
#pragma once

#include "core/op_context.h"
#include "device/cuda/grid/element_ops.h"
#include "device/cuda/grid/grid.h"
#include "device/cuda/grid/kernel_table.h"

namespace heddle::HEDDLE_GRID {

inline ElementArgs NoArgs(const OpContext&) { return {}; }
inline float Number(const OpContext& attrs, Key key) {
  return static_cast<float>(attrs.Float(key));
}

template <Element kOp>
struct MapBody {
  const float* x;
  const float* dy;  // of a gradient, else not read
  float* out;
  ElementArgs args;
  HEDDLE_BODY void operator()(int64_t i) const {
    out[i] = Compute(kOp, x[i], Operands(kOp) == 2 ? dy[i] : 0.0f, args);
  }
};

template <Element kOp, ElementArgsFn kArgs = NoArgs>
Status MapKernel(Queue& queue, KernelContext& ctx) {
  static_assert(Operands(kOp) == 1);
  Tensor& out = ctx.Out("Out");
  return Each(
      queue, out.numel(),
      MapBody<kOp>{ctx.In("X").data<float>(), nullptr, out.mutable_data<float>(), kArgs(ctx)});
}

// The operand that a gradient reads besides the result's gradient.
enum class Reads { kX, kOut };

template <Element kOp, Reads kReads, ElementArgsFn kArgs = NoArgs>
Status GradKernel(Queue& queue, KernelContext& ctx) {
  static_assert(Operands(kOp) == 2);
  const Tensor& x = kReads == Reads::kX ? ctx.In("X") : ctx.In("Out");
  Tensor& dx = ctx.Out("X@GRAD");
  return Each(queue, dx.numel(),
              MapBody<kOp>{x.data<float>(), ctx.In("Out@GRAD").data<float>(),
                           dx.mutable_data<float>(), kArgs(ctx)});
}

// A float32 kernel for every call, which is also a step of fused loops.
template <Element kOp, ElementArgsFn kArgs = NoArgs>
void DefineMap(GridKernel& kernel) {
  kernel.run = MapKernel<kOp, kArgs>;
  kernel.step = {.op = kOp, .args = kArgs};
}
template <Element kOp, Reads kReads, ElementArgsFn kArgs = NoArgs>
void DefineGrad(GridKernel& kernel) {
  kernel.run = GradKernel<kOp, kReads, kArgs>;
  kernel.step = {.op = kOp, .args = kArgs};
}

}  // namespace heddle::HEDDLE_GRID
