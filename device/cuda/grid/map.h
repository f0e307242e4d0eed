// Element-wise kernels of one operand and their gradients, by the operator's Element.
#pragma once

#include "core/kernel_context.h"
#include "device/cuda/grid/element_ops.h"
#include "device/cuda/grid/grid.h"
#include "device/cuda/grid/kernel_table.h"
#include "device/cuda/grid/real.h"

namespace heddle::HEDDLE_GRID {

inline ElementArgs NoArgs(const OpContext&) { return {}; }
inline float Number(const OpContext& attrs, Key key) {
  return static_cast<float>(attrs.Float(key));
}

// The operand that a gradient reads besides the result's gradient.
enum class Reads { kX, kOut };

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
// 16-bit numbers: one kernel for all functions, of which there are many.
template <typename T>
struct MapHalfBody {
  RealIn<T> x, dy;
  RealOut<T> out;
  Element op;
  ElementArgs args;
  HEDDLE_BODY void operator()(int64_t i) const {
    out[i] = Compute(op, x[i], dy.there() ? dy[i] : 0.0f, args);
  }
};
// `dy` may be null.
Status MapHalves(Queue& queue, const Tensor& x, const Tensor* dy, Tensor& out, Element op,
                 const ElementArgs& args);

template <Element kOp>
Status MapReals(Queue& queue, const Tensor& x, const Tensor* dy, Tensor& out,
                const ElementArgs& args) {
  if (x.dtype() != DType::kF32) return MapHalves(queue, x, dy, out, kOp, args);
  const float* const dys = dy != nullptr ? dy->data<float>() : nullptr;
  return Each(queue, out.numel(),
              MapBody<kOp>{x.data<float>(), dys, out.mutable_data<float>(), args});
}

template <Element kOp, ElementArgsFn kArgs = NoArgs>
Status MapKernel(Queue& queue, KernelContext& ctx) {
  static_assert(Operands(kOp) == 1);
  return MapReals<kOp>(queue, ctx.In("X"), nullptr, ctx.Out("Out"), kArgs(ctx));
}
template <Element kOp, Reads kReads, ElementArgsFn kArgs = NoArgs>
Status GradKernel(Queue& queue, KernelContext& ctx) {
  static_assert(Operands(kOp) == 2);
  const Tensor& x = kReads == Reads::kX ? ctx.In("X") : ctx.In("Out");
  return MapReals<kOp>(queue, x, &ctx.In("Out@GRAD"), ctx.Out("X@GRAD"), kArgs(ctx));
}

// A kernel of real numbers for every call; for float32 it is also a step of fused loops.
template <Element kOp, ElementArgsFn kArgs = NoArgs>
void DefineMap(GridKernel& kernel) {
  kernel.run = MapKernel<kOp, kArgs>;
  kernel.dtypes = kReals;
  kernel.step = {.op = kOp, .args = kArgs};
}
template <Element kOp, Reads kReads, ElementArgsFn kArgs = NoArgs>
void DefineGrad(GridKernel& kernel) {
  kernel.run = GradKernel<kOp, kReads, kArgs>;
  kernel.dtypes = kReals;
  kernel.step = {.op = kOp, .args = kArgs};
}

}  // namespace heddle::HEDDLE_GRID
