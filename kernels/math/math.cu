// Functions of one element and their gradients; scale, cast, increment.
#include "core/kernel_context.h"
#include "device/cuda/grid/map.h"

namespace heddle::HEDDLE_GRID {
namespace {

ElementArgs BreluArgs(const OpContext& ctx) { return {Number(ctx, "t_min"), Number(ctx, "t_max")}; }
ElementArgs ClipArgs(const OpContext& ctx) { return {Number(ctx, "min"), Number(ctx, "max")}; }
ElementArgs PowArgs(const OpContext& ctx) { return {Number(ctx, "factor")}; }
ElementArgs ScaleArgs(const OpContext& ctx) {
  ElementArgs g{Number(ctx, "scale"), Number(ctx, "bias")};
  if (!ctx.Bool("bias_after_scale")) g.b *= g.a;
  return g;
}

bool NoFactorTensor(const CallView& call) { return !call.HasIn("FactorTensor"); }
bool IsFinite(const OpContext& attrs) {
  return attrs.def().FindAttr("finite") >= 0 && attrs.Bool("finite");
}
bool NoBoundTensors(const CallView& call) {
  return !call.HasIn("Min") && !call.HasIn("Max") && !IsFinite(call);
}

// --- scale, also of integers ---

template <typename T>
struct AffineBody {
  const T* x;
  T* out;
  ComputeType<T> scale, bias;
  HEDDLE_BODY void operator()(int64_t i) const { Put(ValueOf(x[i]) * scale + bias, out + i); }
};

template <typename T>
Status ScaleAs(Queue& queue, KernelContext& ctx) {
  using C = ComputeType<T>;
  const Tensor& x = ctx.In("X");
  const C scale = static_cast<C>(ctx.Float("scale"));
  C bias = static_cast<C>(ctx.Float("bias"));
  if (!ctx.Bool("bias_after_scale")) bias = static_cast<C>(bias * scale);
  return Each(queue, x.numel(),
              AffineBody<T>{x.data<T>(), ctx.Out("Out").mutable_data<T>(), scale, bias});
}

Status ScaleKernel(Queue& queue, KernelContext& ctx) {
  switch (ctx.In("X").dtype()) {
    case DType::kI32:
      return ScaleAs<int32_t>(queue, ctx);
    case DType::kI64:
      return ScaleAs<int64_t>(queue, ctx);
    default:
      return VisitReal(ctx.In("X").dtype(),
                       [&](auto tag) { return ScaleAs<typename decltype(tag)::type>(queue, ctx); });
  }
}
bool NoScaleTensor(const CallView& call) { return !call.HasIn("ScaleTensor"); }

// --- cast ---

template <typename From, typename To>
struct CastBody {
  const From* x;
  To* out;
  HEDDLE_BODY void operator()(int64_t i) const {
    const ComputeType<From> v = ValueOf(x[i]);
    if constexpr (std::is_same_v<To, bool>)
      out[i] = v != ComputeType<From>(0);
    else
      Put(static_cast<ComputeType<To>>(v), out + i);
  }
};

template <typename From>
Status CastFrom(Queue& queue, const Tensor& x, Tensor& out) {
  const int64_t n = x.numel();
  const From* from = x.data<From>();
  switch (out.dtype()) {
    case DType::kF32:
      return Each(queue, n, CastBody<From, float>{from, out.mutable_data<float>()});
    case DType::kF16:
      return Each(queue, n, CastBody<From, float16>{from, out.mutable_data<float16>()});
    case DType::kBF16:
      return Each(queue, n, CastBody<From, bfloat16>{from, out.mutable_data<bfloat16>()});
    case DType::kI32:
      return Each(queue, n, CastBody<From, int32_t>{from, out.mutable_data<int32_t>()});
    case DType::kI64:
      return Each(queue, n, CastBody<From, int64_t>{from, out.mutable_data<int64_t>()});
    case DType::kBool:
      return Each(queue, n, CastBody<From, bool>{from, out.mutable_data<bool>()});
    default:
      return Unimplemented("cast has no CUDA kernel to ", Name(out.dtype()));
  }
}

Status CastKernel(Queue& queue, KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  Tensor& out = ctx.Out("Out");
  if (x.dtype() == out.dtype()) return queue.Copy(out.mutable_raw(), x.raw(), x.bytes());
  switch (x.dtype()) {
    case DType::kF32:
      return CastFrom<float>(queue, x, out);
    case DType::kF16:
      return CastFrom<float16>(queue, x, out);
    case DType::kBF16:
      return CastFrom<bfloat16>(queue, x, out);
    case DType::kI32:
      return CastFrom<int32_t>(queue, x, out);
    case DType::kI64:
      return CastFrom<int64_t>(queue, x, out);
    case DType::kBool:
      return CastFrom<bool>(queue, x, out);
    default:
      return Unimplemented("cast has no CUDA kernel from ", Name(x.dtype()));
  }
}

// --- increment ---

template <typename T>
struct IncrementBody {
  const T* x;
  T* out;
  T step;
  HEDDLE_BODY void operator()(int64_t i) const { out[i] = x[i] + step; }
};
Status Increment(Queue& queue, KernelContext& ctx) {
  return Each(queue, 1,
              IncrementBody<float>{ctx.In("X").data<float>(), ctx.Out("Out").mutable_data<float>(),
                                   static_cast<float>(ctx.Float("step"))});
}

}  // namespace
}  // namespace heddle::HEDDLE_GRID

HEDDLE_CUDA_KERNEL(exp) { DefineMap<Element::kExp>(kernel); }
HEDDLE_CUDA_KERNEL(log) { DefineMap<Element::kLog>(kernel); }
HEDDLE_CUDA_KERNEL(sqrt) { DefineMap<Element::kSqrt>(kernel); }
HEDDLE_CUDA_KERNEL(rsqrt) { DefineMap<Element::kRsqrt>(kernel); }
HEDDLE_CUDA_KERNEL(abs) { DefineMap<Element::kAbs>(kernel); }
HEDDLE_CUDA_KERNEL(square) { DefineMap<Element::kSquare>(kernel); }
HEDDLE_CUDA_KERNEL(reciprocal) { DefineMap<Element::kReciprocal>(kernel); }
HEDDLE_CUDA_KERNEL(erf) { DefineMap<Element::kErf>(kernel); }
HEDDLE_CUDA_KERNEL(brelu) { DefineMap<Element::kClip, BreluArgs>(kernel); }
HEDDLE_CUDA_KERNEL(floor) { DefineMap<Element::kFloor>(kernel); }
HEDDLE_CUDA_KERNEL(ceil) { DefineMap<Element::kCeil>(kernel); }
HEDDLE_CUDA_KERNEL(round) {
  DefineMap<Element::kRound>(kernel);
  kernel.covers = [](const CallView& call) { return !call.Bool("half_to_even"); };
  kernel.step->knows = [](const OpContext& attrs) { return !attrs.Bool("half_to_even"); };
}
HEDDLE_CUDA_KERNEL(sin) { DefineMap<Element::kSin>(kernel); }
HEDDLE_CUDA_KERNEL(cos) { DefineMap<Element::kCos>(kernel); }
HEDDLE_CUDA_KERNEL(exp_grad) { DefineGrad<Element::kExpGrad, Reads::kOut>(kernel); }
HEDDLE_CUDA_KERNEL(log_grad) { DefineGrad<Element::kLogGrad, Reads::kX>(kernel); }
HEDDLE_CUDA_KERNEL(sqrt_grad) { DefineGrad<Element::kSqrtGrad, Reads::kOut>(kernel); }
HEDDLE_CUDA_KERNEL(rsqrt_grad) { DefineGrad<Element::kRsqrtGrad, Reads::kOut>(kernel); }
HEDDLE_CUDA_KERNEL(abs_grad) { DefineGrad<Element::kAbsGrad, Reads::kX>(kernel); }
HEDDLE_CUDA_KERNEL(square_grad) { DefineGrad<Element::kSquareGrad, Reads::kX>(kernel); }
HEDDLE_CUDA_KERNEL(reciprocal_grad) { DefineGrad<Element::kReciprocalGrad, Reads::kOut>(kernel); }
HEDDLE_CUDA_KERNEL(sin_grad) { DefineGrad<Element::kSinGrad, Reads::kX>(kernel); }
HEDDLE_CUDA_KERNEL(cos_grad) { DefineGrad<Element::kCosGrad, Reads::kX>(kernel); }
HEDDLE_CUDA_KERNEL(clip) {
  DefineMap<Element::kClip, ClipArgs>(kernel);
  kernel.covers = NoBoundTensors;
  kernel.step->knows = [](const OpContext& attrs) { return !IsFinite(attrs); };
}
HEDDLE_CUDA_KERNEL(clip_grad) {
  DefineGrad<Element::kClipGrad, Reads::kX, ClipArgs>(kernel);
  kernel.covers = NoBoundTensors;
}
HEDDLE_CUDA_KERNEL(pow) {
  DefineMap<Element::kPow, PowArgs>(kernel);
  kernel.covers = NoFactorTensor;
}
HEDDLE_CUDA_KERNEL(pow_grad) {
  DefineGrad<Element::kPowGrad, Reads::kX, PowArgs>(kernel);
  kernel.covers = NoFactorTensor;
}
HEDDLE_CUDA_KERNEL(scale) {
  DefineMap<Element::kScale, ScaleArgs>(kernel);
  kernel.run = ScaleKernel;
  kernel.covers = NoScaleTensor;
  kernel.dtypes = kNumbers;
}
HEDDLE_CUDA_KERNEL(cast) {
  kernel = {CastKernel, PlainOut, kPlain};
  kernel.mixes = true;
}
HEDDLE_CUDA_KERNEL(increment) { kernel = {Increment}; }
