// Element-wise operators with one operand, their gradients, and what makes or converts elements.
#include <cstring>

#include "core/shapes.h"
#include "device/cuda/grid/element_table.h"
#include "device/cuda/grid/grid.h"
#include "device/cuda/grid/kernel_table.h"

namespace heddle::HEDDLE_GRID {
namespace {

template <Element kOp>
struct MapBody {
  const float* x;
  const float* dy;
  float* out;
  ElementArgs args;
  HEDDLE_BODY void operator()(int64_t i) const {
    out[i] = Compute(kOp, x[i], Operands(kOp) == 2 ? dy[i] : 0.0f, args);
  }
};

template <Element kOp>
Status MapKernel(Queue& queue, KernelContext& ctx) {
  const ElementOp& op = *FindElementOp(ctx.def().name());
  const ElementArgs args = op.args != nullptr ? op.args(ctx) : ElementArgs();
  if constexpr (Operands(kOp) == 1) {
    Tensor& out = ctx.Out("Out");
    return Each(queue, out.numel(),
                MapBody<kOp>{ctx.In("X").data<float>(), nullptr, out.mutable_data<float>(), args});
  } else {
    const Tensor& x = op.reads == "X" ? ctx.In("X") : ctx.In("Out");
    Tensor& dx = ctx.Out("X@GRAD");
    return Each(queue, dx.numel(),
                MapBody<kOp>{x.data<float>(), ctx.In("Out@GRAD").data<float>(),
                             dx.mutable_data<float>(), args});
  }
}

template <Element kOp, Element kTanhOp>
Status GeluKernel(Queue& queue, KernelContext& ctx) {
  return ctx.Bool("approximate") ? MapKernel<kTanhOp>(queue, ctx) : MapKernel<kOp>(queue, ctx);
}

bool NoFactorTensor(const CallView& call) { return !call.HasIn("FactorTensor"); }
bool NoBoundTensors(const CallView& call) { return !call.HasIn("Min") && !call.HasIn("Max"); }

// --- scale, also of integers ---

template <typename T>
struct AffineBody {
  const T* x;
  T* out;
  T scale, bias;
  HEDDLE_BODY void operator()(int64_t i) const { out[i] = x[i] * scale + bias; }
};

template <typename T>
Status ScaleAs(Queue& queue, KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  const T scale = static_cast<T>(ctx.Float("scale"));
  T bias = static_cast<T>(ctx.Float("bias"));
  if (!ctx.Bool("bias_after_scale")) bias = static_cast<T>(bias * scale);
  return Each(queue, x.numel(),
              AffineBody<T>{x.data<T>(), ctx.Out("Out").mutable_data<T>(), scale, bias});
}

Status ScaleKernel(Queue& queue, KernelContext& ctx) {
  switch (ctx.In("X").dtype()) {
    case DType::kF32:
      return ScaleAs<float>(queue, ctx);
    case DType::kI32:
      return ScaleAs<int32_t>(queue, ctx);
    case DType::kI64:
      return ScaleAs<int64_t>(queue, ctx);
    default:
      return Unimplemented("scale has no CUDA kernel for ", Name(ctx.In("X").dtype()));
  }
}
bool NoScaleTensor(const CallView& call) { return !call.HasIn("ScaleTensor"); }

// --- cast ---

template <typename From, typename To>
struct CastBody {
  const From* x;
  To* out;
  HEDDLE_BODY void operator()(int64_t i) const {
    if constexpr (std::is_same_v<To, bool>)
      out[i] = x[i] != From(0);
    else
      out[i] = static_cast<To>(x[i]);
  }
};

template <typename From>
Status CastFrom(Queue& queue, const Tensor& x, Tensor& out) {
  const int64_t n = x.numel();
  const From* from = x.data<From>();
  switch (out.dtype()) {
    case DType::kF32:
      return Each(queue, n, CastBody<From, float>{from, out.mutable_data<float>()});
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
constexpr uint32_t kPlain = Of(DType::kF32) | Of(DType::kI32) | Of(DType::kI64) | Of(DType::kBool);
bool PlainOut(const CallView& call) { return (kPlain & Of(call.OutDType("Out"))) != 0; }

// --- elements that are all alike ---

template <typename T>
struct FillBody {
  T* out;
  T value;
  HEDDLE_BODY void operator()(int64_t i) const { out[i] = value; }
};

Status Fill(Queue& queue, Tensor& out, double value) {
  switch (out.dtype()) {
    case DType::kF32:
      return Each(queue, out.numel(),
                  FillBody<float>{out.mutable_data<float>(), static_cast<float>(value)});
    case DType::kI32:
      return Each(queue, out.numel(),
                  FillBody<int32_t>{out.mutable_data<int32_t>(), static_cast<int32_t>(value)});
    case DType::kI64:
      return Each(queue, out.numel(),
                  FillBody<int64_t>{out.mutable_data<int64_t>(), static_cast<int64_t>(value)});
    case DType::kBool:
      return Each(queue, out.numel(), FillBody<bool>{out.mutable_data<bool>(), value != 0});
    default:
      return Unimplemented("no CUDA kernel fills ", Name(out.dtype()));
  }
}
Status FillAnyLike(Queue& queue, KernelContext& ctx) {
  return Fill(queue, ctx.Out("Out"), ctx.Float("value"));
}
Status FillZerosLike(Queue& queue, KernelContext& ctx) {
  Tensor& out = ctx.Out("Out");
  return queue.Zero(out.mutable_raw(), out.bytes());
}

// --- truth ---

struct NotBody {
  const bool* x;
  bool* out;
  HEDDLE_BODY void operator()(int64_t i) const { out[i] = !x[i]; }
};
Status LogicalNot(Queue& queue, KernelContext& ctx) {
  Tensor& out = ctx.Out("Out");
  return Each(queue, out.numel(), NotBody{ctx.In("X").data<bool>(), out.mutable_data<bool>()});
}

// --- assign ---

Status Assign(Queue& queue, KernelContext& ctx) {
  const Tensor* x = ctx.InOpt("X");
  if (x == nullptr || ctx.InVar("X") == ctx.OutVar("Out")) return Status::Ok();
  Tensor& out = ctx.Out("Out");
  return out.raw() == x->raw() ? Status::Ok() : queue.Copy(out.mutable_raw(), x->raw(), x->bytes());
}

// --- sum ---

constexpr int kMostTerms = 16;
template <typename T>
struct SumBody {
  const T* x[kMostTerms];
  int count;
  T* out;
  HEDDLE_BODY void operator()(int64_t i) const {
    T sum = x[0][i];
    for (int k = 1; k < count; ++k) sum = sum + x[k][i];
    out[i] = sum;
  }
};

// More terms than a body holds: the sum so far is one of them.
template <typename T>
Status SumAs(Queue& queue, const std::vector<const Tensor*>& terms, Tensor& out) {
  SumBody<T> body{};
  body.out = out.mutable_data<T>();
  for (size_t at = 0; at < terms.size();) {
    body.count = 0;
    if (at > 0) body.x[body.count++] = out.data<T>();
    while (at < terms.size() && body.count < kMostTerms)
      body.x[body.count++] = terms[at++]->data<T>();
    HEDDLE_RETURN_IF_ERROR(Each(queue, out.numel(), body));
  }
  return Status::Ok();
}

Status SumKernel(Queue& queue, KernelContext& ctx) {
  std::vector<const Tensor*> terms;
  Tensor& out = ctx.Out("Out");
  for (int i = 0; i < ctx.InCount("X"); ++i) {
    const Tensor* t = ctx.InOpt("X", i);
    if (t == nullptr || t->numel() == 0) continue;
    if (t->dtype() != out.dtype() || t->numel() != out.numel())
      return InvalidArgument("X[", i, "] does not fit the sum's shape ", out.shape().ToString());
    terms.push_back(t);
  }
  // A term in the result's memory is read before it is overwritten only in the first round.
  for (size_t i = kMostTerms; i < terms.size(); ++i)
    if (terms[i]->raw() == out.raw()) std::swap(terms[0], terms[i]);
  if (terms.empty()) return queue.Zero(out.mutable_raw(), out.bytes());
  switch (out.dtype()) {
    case DType::kF32:
      return SumAs<float>(queue, terms, out);
    case DType::kI32:
      return SumAs<int32_t>(queue, terms, out);
    case DType::kI64:
      return SumAs<int64_t>(queue, terms, out);
    default:
      return Unimplemented("sum has no CUDA kernel for ", Name(out.dtype()));
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

#define HEDDLE_MAP(name, op) list->push_back({name, MapKernel<Element::op>})
void AddElementKernels(KernelList* list) {
  HEDDLE_MAP("relu", kRelu);
  HEDDLE_MAP("sigmoid", kSigmoid);
  HEDDLE_MAP("tanh", kTanh);
  HEDDLE_MAP("exp", kExp);
  HEDDLE_MAP("log", kLog);
  HEDDLE_MAP("sqrt", kSqrt);
  HEDDLE_MAP("rsqrt", kRsqrt);
  HEDDLE_MAP("abs", kAbs);
  HEDDLE_MAP("square", kSquare);
  HEDDLE_MAP("reciprocal", kReciprocal);
  HEDDLE_MAP("erf", kErf);
  HEDDLE_MAP("brelu", kClip);
  HEDDLE_MAP("relu6", kClip);
  HEDDLE_MAP("hard_swish", kHardSwish);
  HEDDLE_MAP("hard_sigmoid", kHardSigmoid);
  HEDDLE_MAP("swish", kSwish);
  HEDDLE_MAP("silu", kSwish);
  HEDDLE_MAP("leaky_relu", kLeakyRelu);
  HEDDLE_MAP("elu", kElu);
  HEDDLE_MAP("softplus", kSoftplus);
  HEDDLE_MAP("logsigmoid", kLogSigmoid);
  HEDDLE_MAP("softsign", kSoftsign);
  HEDDLE_MAP("mish", kMish);
  HEDDLE_MAP("floor", kFloor);
  HEDDLE_MAP("ceil", kCeil);
  HEDDLE_MAP("round", kRound);
  HEDDLE_MAP("sin", kSin);
  HEDDLE_MAP("cos", kCos);
  HEDDLE_MAP("stanh", kStanh);
  HEDDLE_MAP("tanh_shrink", kTanhShrink);
  HEDDLE_MAP("relu_grad", kReluGrad);
  HEDDLE_MAP("sigmoid_grad", kSigmoidGrad);
  HEDDLE_MAP("tanh_grad", kTanhGrad);
  HEDDLE_MAP("exp_grad", kExpGrad);
  HEDDLE_MAP("log_grad", kLogGrad);
  HEDDLE_MAP("sqrt_grad", kSqrtGrad);
  HEDDLE_MAP("rsqrt_grad", kRsqrtGrad);
  HEDDLE_MAP("abs_grad", kAbsGrad);
  HEDDLE_MAP("square_grad", kSquareGrad);
  HEDDLE_MAP("reciprocal_grad", kReciprocalGrad);
  HEDDLE_MAP("relu6_grad", kClipGrad);
  HEDDLE_MAP("hard_swish_grad", kHardSwishGrad);
  HEDDLE_MAP("hard_sigmoid_grad", kHardSigmoidGrad);
  HEDDLE_MAP("swish_grad", kSwishGrad);
  HEDDLE_MAP("silu_grad", kSwishGrad);
  HEDDLE_MAP("leaky_relu_grad", kLeakyReluGrad);
  HEDDLE_MAP("elu_grad", kEluGrad);
  HEDDLE_MAP("softplus_grad", kSoftplusGrad);
  HEDDLE_MAP("logsigmoid_grad", kLogSigmoidGrad);
  HEDDLE_MAP("softsign_grad", kSoftsignGrad);
  HEDDLE_MAP("sin_grad", kSinGrad);
  HEDDLE_MAP("cos_grad", kCosGrad);
  list->push_back({"clip", MapKernel<Element::kClip>, NoBoundTensors});
  list->push_back({"clip_grad", MapKernel<Element::kClipGrad>, NoBoundTensors});
  list->push_back({"pow", MapKernel<Element::kPow>, NoFactorTensor});
  list->push_back({"pow_grad", MapKernel<Element::kPowGrad>, NoFactorTensor});
  list->push_back({"gelu", GeluKernel<Element::kGelu, Element::kGeluTanh>});
  list->push_back({"gelu_grad", GeluKernel<Element::kGeluGrad, Element::kGeluTanhGrad>});
  constexpr uint32_t kNumbers = Of(DType::kF32) | Of(DType::kI32) | Of(DType::kI64);
  list->push_back({"scale", ScaleKernel, NoScaleTensor, kNumbers});
  list->push_back({"sum", SumKernel, nullptr, kNumbers});
  list->push_back({"cast", CastKernel, PlainOut, kPlain});
  list->push_back({"fill_any_like", FillAnyLike, PlainOut, kPlain});
  list->push_back({"fill_zeros_like", FillZerosLike, nullptr, kAnyDType});
  list->push_back({"logical_not", LogicalNot, nullptr, Of(DType::kBool)});
  list->push_back({"assign", Assign, nullptr, kAnyDType});
  list->push_back({"share_data", Assign, nullptr, kAnyDType});
  list->push_back({"increment", Increment});
}
#undef HEDDLE_MAP

}  // namespace heddle::HEDDLE_GRID
