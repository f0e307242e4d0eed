// Activations and their gradients.
#include <cmath>
#include <utility>

#include "core/kernel_context.h"
#include "device/cuda/grid/map.h"

namespace heddle::HEDDLE_GRID {
namespace {

ElementArgs Relu6Args(const OpContext& ctx) { return {0, Number(ctx, "threshold")}; }
ElementArgs HardSwishArgs(const OpContext&) { return {6, 6, 3}; }
ElementArgs HardSigmoidArgs(const OpContext& ctx) {
  return {Number(ctx, "slope"), Number(ctx, "offset")};
}
ElementArgs SwishArgs(const OpContext& ctx) { return {Number(ctx, "beta")}; }
ElementArgs SiluArgs(const OpContext&) { return {1}; }
ElementArgs LeakyReluArgs(const OpContext& ctx) {
  ElementArgs g{1, Number(ctx, "alpha")};
  if (ctx.Int("op_version") == 0 && g.b > 1) std::swap(g.a, g.b);
  return g;
}
ElementArgs EluArgs(const OpContext& ctx) { return {Number(ctx, "alpha")}; }
ElementArgs SoftplusArgs(const OpContext& ctx) {
  return {Number(ctx, "beta"), Number(ctx, "threshold")};
}
ElementArgs MishArgs(const OpContext& ctx) { return {Number(ctx, "threshold")}; }
ElementArgs StanhArgs(const OpContext& ctx) {
  return {Number(ctx, "scale_a"), Number(ctx, "scale_b")};
}

// relu is two functions, by its attribute; the arguments are those of the limits, which keep NaN.
Element ReluStep(const OpContext& attrs) {
  return attrs.Bool("keep_nan") ? Element::kClip : Element::kRelu;
}
ElementArgs ReluArgs(const OpContext&) { return {0, INFINITY}; }
Status Relu(Queue& queue, KernelContext& ctx) {
  return ctx.Bool("keep_nan") ? MapKernel<Element::kClip, ReluArgs>(queue, ctx)
                              : MapKernel<Element::kRelu>(queue, ctx);
}

// So is hard_swish.
Element HardSwishStep(const OpContext& attrs) {
  return attrs.Bool("divide_first") ? Element::kHardSwishDividedFirst : Element::kHardSwish;
}
Status HardSwish(Queue& queue, KernelContext& ctx) {
  return ctx.Bool("divide_first")
             ? MapKernel<Element::kHardSwishDividedFirst, HardSwishArgs>(queue, ctx)
             : MapKernel<Element::kHardSwish, HardSwishArgs>(queue, ctx);
}

// gelu is two functions, by its attribute.
template <Element kOp, Element kTanhOp>
Element GeluStep(const OpContext& attrs) {
  return attrs.Bool("approximate") ? kTanhOp : kOp;
}
template <GridKernelFn kRun, GridKernelFn kTanhRun>
Status Gelu(Queue& queue, KernelContext& ctx) {
  return ctx.Bool("approximate") ? kTanhRun(queue, ctx) : kRun(queue, ctx);
}

// Gradients of another kind, which CUDA's kernels do not have.
bool KeepsNan(const OpContext& attrs) { return attrs.Bool("keep_nan"); }
bool AlphaAtZero(const OpContext& attrs) { return attrs.Bool("alpha_at_zero"); }
bool OfResult(const OpContext& attrs) { return attrs.Bool("of_result"); }
template <bool (*kOther)(const OpContext&)>
void DefineWithout(GridKernel& kernel) {
  kernel.covers = [](const CallView& call) { return !kOther(call); };
  kernel.step->knows = [](const OpContext& attrs) { return !kOther(attrs); };
}

}  // namespace
}  // namespace heddle::HEDDLE_GRID

HEDDLE_CUDA_KERNEL(relu) {
  DefineMap<Element::kRelu, ReluArgs>(kernel);
  kernel.run = Relu;
  kernel.step->choose = ReluStep;
}
HEDDLE_CUDA_KERNEL(sigmoid) { DefineMap<Element::kSigmoid>(kernel); }
HEDDLE_CUDA_KERNEL(tanh) { DefineMap<Element::kTanh>(kernel); }
HEDDLE_CUDA_KERNEL(relu6) { DefineMap<Element::kClip, Relu6Args>(kernel); }
HEDDLE_CUDA_KERNEL(hard_swish) {
  DefineMap<Element::kHardSwish, HardSwishArgs>(kernel);
  kernel.run = HardSwish;
  kernel.step->choose = HardSwishStep;
}
HEDDLE_CUDA_KERNEL(hard_sigmoid) { DefineMap<Element::kHardSigmoid, HardSigmoidArgs>(kernel); }
HEDDLE_CUDA_KERNEL(swish) { DefineMap<Element::kSwish, SwishArgs>(kernel); }
HEDDLE_CUDA_KERNEL(silu) { DefineMap<Element::kSwish, SiluArgs>(kernel); }
HEDDLE_CUDA_KERNEL(leaky_relu) { DefineMap<Element::kLeakyRelu, LeakyReluArgs>(kernel); }
HEDDLE_CUDA_KERNEL(elu) { DefineMap<Element::kElu, EluArgs>(kernel); }
HEDDLE_CUDA_KERNEL(softplus) { DefineMap<Element::kSoftplus, SoftplusArgs>(kernel); }
HEDDLE_CUDA_KERNEL(logsigmoid) { DefineMap<Element::kLogSigmoid>(kernel); }
HEDDLE_CUDA_KERNEL(softsign) { DefineMap<Element::kSoftsign>(kernel); }
HEDDLE_CUDA_KERNEL(mish) { DefineMap<Element::kMish, MishArgs>(kernel); }
HEDDLE_CUDA_KERNEL(stanh) { DefineMap<Element::kStanh, StanhArgs>(kernel); }
HEDDLE_CUDA_KERNEL(tanh_shrink) { DefineMap<Element::kTanhShrink>(kernel); }
HEDDLE_CUDA_KERNEL(relu_grad) {
  DefineGrad<Element::kReluGrad, Reads::kOut>(kernel);
  DefineWithout<KeepsNan>(kernel);
}
HEDDLE_CUDA_KERNEL(sigmoid_grad) { DefineGrad<Element::kSigmoidGrad, Reads::kOut>(kernel); }
HEDDLE_CUDA_KERNEL(tanh_grad) { DefineGrad<Element::kTanhGrad, Reads::kOut>(kernel); }
HEDDLE_CUDA_KERNEL(relu6_grad) {
  DefineGrad<Element::kClipGrad, Reads::kOut, Relu6Args>(kernel);
  DefineWithout<KeepsNan>(kernel);
}
HEDDLE_CUDA_KERNEL(hard_swish_grad) {
  DefineGrad<Element::kHardSwishGrad, Reads::kX, HardSwishArgs>(kernel);
}
HEDDLE_CUDA_KERNEL(hard_sigmoid_grad) {
  DefineGrad<Element::kHardSigmoidGrad, Reads::kOut, HardSigmoidArgs>(kernel);
}
HEDDLE_CUDA_KERNEL(swish_grad) { DefineGrad<Element::kSwishGrad, Reads::kX, SwishArgs>(kernel); }
HEDDLE_CUDA_KERNEL(silu_grad) { DefineGrad<Element::kSwishGrad, Reads::kX, SiluArgs>(kernel); }
HEDDLE_CUDA_KERNEL(leaky_relu_grad) {
  DefineGrad<Element::kLeakyReluGrad, Reads::kX, LeakyReluArgs>(kernel);
  DefineWithout<AlphaAtZero>(kernel);
}
HEDDLE_CUDA_KERNEL(elu_grad) {
  DefineGrad<Element::kEluGrad, Reads::kX, EluArgs>(kernel);
  DefineWithout<OfResult>(kernel);
}
HEDDLE_CUDA_KERNEL(softplus_grad) {
  DefineGrad<Element::kSoftplusGrad, Reads::kX, SoftplusArgs>(kernel);
}
HEDDLE_CUDA_KERNEL(logsigmoid_grad) { DefineGrad<Element::kLogSigmoidGrad, Reads::kX>(kernel); }
HEDDLE_CUDA_KERNEL(softsign_grad) { DefineGrad<Element::kSoftsignGrad, Reads::kX>(kernel); }
HEDDLE_CUDA_KERNEL(gelu) {
  DefineMap<Element::kGelu>(kernel);
  kernel.run = Gelu<MapKernel<Element::kGelu>, MapKernel<Element::kGeluTanh>>;
  kernel.step->choose = GeluStep<Element::kGelu, Element::kGeluTanh>;
}
HEDDLE_CUDA_KERNEL(gelu_grad) {
  DefineGrad<Element::kGeluGrad, Reads::kX>(kernel);
  kernel.run = Gelu<GradKernel<Element::kGeluGrad, Reads::kX>,
                    GradKernel<Element::kGeluTanhGrad, Reads::kX>>;
  kernel.step->choose = GeluStep<Element::kGeluGrad, Element::kGeluTanhGrad>;
}
