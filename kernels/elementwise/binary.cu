// Arithmetic of two operands that broadcast, and its gradients.
#include <cmath>

#include "core/kernel_context.h"
#include "device/cuda/grid/broadcast.h"
#include "device/cuda/grid/element_ops.h"
#include "device/cuda/grid/kernel_table.h"
#include "device/cuda/grid/reduce.h"

namespace heddle::HEDDLE_GRID {
namespace {

template <Element kOp>
struct Arithmetic {
  template <typename T>
  HEDDLE_BODY static T Apply(T x, T y) {
    return element_internal::OfTwo<T>(kOp, x, y);
  }
};

template <Element kOp>
Status Reals(Queue& queue, KernelContext& ctx) {
  return VisitReal(ctx.In("X").dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    return Binary<Arithmetic<kOp>, T, T>(queue, ctx);
  });
}
template <Element kOp>
Status Numbers(Queue& queue, KernelContext& ctx) {
  switch (ctx.In("X").dtype()) {
    case DType::kI32:
      return Binary<Arithmetic<kOp>, int32_t, int32_t>(queue, ctx);
    case DType::kI64:
      return Binary<Arithmetic<kOp>, int64_t, int64_t>(queue, ctx);
    default:
      return Reals<kOp>(queue, ctx);
  }
}

// kKeep passes NaN on from both operands, by the attribute.
template <Element kOp, Element kKeep>
Status Extreme(Queue& queue, KernelContext& ctx) {
  return ctx.Bool("keep_nan") ? Numbers<kKeep>(queue, ctx) : Numbers<kOp>(queue, ctx);
}
template <Element kOp, Element kKeep>
GridKernel ExtremeKernel() {
  GridKernel kernel{Extreme<kOp, kKeep>, SameDTypes, kNumbers, StepOfTwo(kOp)};
  kernel.step->choose = [](const OpContext& attrs) { return attrs.Bool("keep_nan") ? kKeep : kOp; };
  return kernel;
}

// --- gradients ---

// The gradient of one operand at an element, from X, Y, the result and its gradient.
#define HEDDLE_GRAD(name, expression)                                         \
  struct name {                                                               \
    HEDDLE_BODY static float Apply(float x, float y, float out, float dout) { \
      (void)x, (void)y, (void)out;                                            \
      return expression;                                                      \
    }                                                                         \
  }
HEDDLE_GRAD(Pass, dout);
HEDDLE_GRAD(Minus, -dout);
HEDDLE_GRAD(TimesX, dout* x);
HEDDLE_GRAD(TimesY, dout* y);
HEDDLE_GRAD(DivX, dout / y);
HEDDLE_GRAD(DivY, -dout*(out / y));
HEDDLE_GRAD(MaxX, x > y ? dout : 0);
HEDDLE_GRAD(MaxY, x <= y ? dout : 0);
HEDDLE_GRAD(MinX, x < y ? dout : 0);
HEDDLE_GRAD(MinY, x >= y ? dout : 0);
HEDDLE_GRAD(PowX, dout* y* powf(x, y - 1));
HEDDLE_GRAD(PowY, dout* logf(x) * powf(x, y));
#undef HEDDLE_GRAD

template <typename Fn, typename T>
struct GradMap {
  RealIn<T> x, y, out, dout;
  // Places: X, Y, the result.
  HEDDLE_BODY float operator()(const Strides<3>::Places& p) const {
    return Fn::Apply(x.there() ? x[p.at[0]] : 0, y.there() ? y[p.at[1]] : 0,
                     out.there() ? out[p.at[2]] : 0, dout[p.at[2]]);
  }
};

// The gradient of operand `of` (0: X, 1: Y), summed over what it was repeated along.
template <typename Fn, typename T>
Status OneGrad(Queue& queue, const Shape& shape, const Operands3& s, int of,
               const GradMap<Fn, T>& map, Tensor* d) {
  if (d == nullptr) return Status::Ok();
  const Steps steps[3] = {s.x, s.y, s.out};
  Strides<3> kept, reduced;
  Cut<3>(
      shape, steps, [&](int i) { return steps[of].at[i] != 0 || shape[i] == 1; }, &kept, &reduced);
  if (kept.numel != d->numel())
    return InvalidArgument("a gradient has ", d->numel(), " elements, expected ", kept.numel);
  return ReduceInto<SumOp>(queue, kept, reduced, map, d->mutable_data<T>());
}

// `kReadsX`, `kReadsY`, `kReadsOut`: which operands the gradients read. Others may have no memory.
template <typename OfX, typename OfY, bool kReadsX, bool kReadsY, bool kReadsOut, typename T>
Status BinaryGradAs(Queue& queue, KernelContext& ctx) {
  const Tensor &x = ctx.In("X"), &y = ctx.In("Y"), &dout = ctx.In("Out@GRAD");
  const Operands3 s = StepsOf(x.shape(), y.shape(), dout.shape(), AxisOf(ctx));
  const auto xs = ReadOr<T>(kReadsX ? &x : nullptr), ys = ReadOr<T>(kReadsY ? &y : nullptr);
  const auto outs = ReadOr<T>(kReadsOut ? &ctx.In("Out") : nullptr), douts = ReadOf<T>(dout);
  // X@GRAD may lie in the memory of Out@GRAD, so it is last.
  HEDDLE_RETURN_IF_ERROR(OneGrad(queue, dout.shape(), s, 1, GradMap<OfY, T>{xs, ys, outs, douts},
                                 ctx.OutOpt("Y@GRAD")));
  return OneGrad(queue, dout.shape(), s, 0, GradMap<OfX, T>{xs, ys, outs, douts},
                 ctx.OutOpt("X@GRAD"));
}
template <typename OfX, typename OfY, bool kReadsX, bool kReadsY, bool kReadsOut>
Status BinaryGrad(Queue& queue, KernelContext& ctx) {
  return VisitReal(ctx.In("Out@GRAD").dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    return BinaryGradAs<OfX, OfY, kReadsX, kReadsY, kReadsOut, T>(queue, ctx);
  });
}

// The result's gradient has the result's shape, and all are real numbers.
bool CoversGrad(const CallView& call) {
  if (!IsReal(call.InDType("X")) || !IsReal(call.InDType("Y")) || !IsReal(call.InDType("Out@GRAD")))
    return false;
  const auto shape = BroadcastShape(call.InShape("X"), call.InShape("Y"), AxisOf(call));
  return shape.ok() && *shape == call.InShape("Out@GRAD");
}

bool FloorMod(const CallView& call) { return SameDTypes(call) && !call.Bool("truncate"); }

}  // namespace
}  // namespace heddle::HEDDLE_GRID

HEDDLE_CUDA_KERNEL(elementwise_add) {
  kernel = {Numbers<Element::kAdd>, SameDTypes, kNumbers, StepOfTwo(Element::kAdd)};
}
HEDDLE_CUDA_KERNEL(grad_add) {
  kernel = {Numbers<Element::kAdd>, SameDTypes, kNumbers, StepOfTwo(Element::kAdd)};
}
HEDDLE_CUDA_KERNEL(elementwise_sub) {
  kernel = {Numbers<Element::kSub>, SameDTypes, kNumbers, StepOfTwo(Element::kSub)};
}
HEDDLE_CUDA_KERNEL(elementwise_mul) {
  kernel = {Numbers<Element::kMul>, SameDTypes, kNumbers, StepOfTwo(Element::kMul)};
}
HEDDLE_CUDA_KERNEL(elementwise_max) {
  kernel = ExtremeKernel<Element::kMax, Element::kMaxKeepsNan>();
}
HEDDLE_CUDA_KERNEL(elementwise_min) {
  kernel = ExtremeKernel<Element::kMin, Element::kMinKeepsNan>();
}
HEDDLE_CUDA_KERNEL(elementwise_div) {
  kernel = {Reals<Element::kDiv>, SameDTypes, kReals, StepOfTwo(Element::kDiv)};
}
HEDDLE_CUDA_KERNEL(elementwise_pow) {
  kernel = {Reals<Element::kElementPow>, SameDTypes, kReals, StepOfTwo(Element::kElementPow)};
}
HEDDLE_CUDA_KERNEL(elementwise_mod) {
  kernel = {Reals<Element::kMod>, FloorMod, kReals, StepOfTwo(Element::kMod)};
  kernel.step->knows = [](const OpContext& attrs) { return !attrs.Bool("truncate"); };
}
HEDDLE_CUDA_KERNEL(elementwise_floordiv) {
  kernel = {Reals<Element::kFloorDiv>, SameDTypes, kReals, StepOfTwo(Element::kFloorDiv)};
}
HEDDLE_CUDA_KERNEL(elementwise_add_grad) {
  kernel = {BinaryGrad<Pass, Pass, false, false, false>, CoversGrad, kReals};
}
HEDDLE_CUDA_KERNEL(elementwise_sub_grad) {
  kernel = {BinaryGrad<Pass, Minus, false, false, false>, CoversGrad, kReals};
}
HEDDLE_CUDA_KERNEL(elementwise_mul_grad) {
  kernel = {BinaryGrad<TimesY, TimesX, true, true, false>, CoversGrad, kReals};
}
HEDDLE_CUDA_KERNEL(elementwise_div_grad) {
  kernel = {BinaryGrad<DivX, DivY, false, true, true>, CoversGrad, kReals};
}
HEDDLE_CUDA_KERNEL(elementwise_max_grad) {
  kernel = {BinaryGrad<MaxX, MaxY, true, true, false>, CoversGrad, kReals};
}
HEDDLE_CUDA_KERNEL(elementwise_min_grad) {
  kernel = {BinaryGrad<MinX, MinY, true, true, false>, CoversGrad, kReals};
}
HEDDLE_CUDA_KERNEL(elementwise_pow_grad) {
  kernel = {BinaryGrad<PowX, PowY, true, true, false>, CoversGrad, kReals};
}
