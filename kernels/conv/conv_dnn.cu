#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/kernel_context.h"
#include "device/cuda/grid/addend.h"
#include "device/cuda/grid/epilogue.h"
#include "kernels/base/implementations.h"
#include "kernels/conv/conv_dnn.cuh"

namespace heddle::HEDDLE_GRID {
namespace {

using Kind = DnnConv::Kind;

// The plans of one call. Without any, the kernels of conv.cu run.
struct ConvPlans final : KernelState {
  DType dtype = DType::kUnknown;
  ConvShape shape;
  std::unique_ptr<DnnPlan> plans[3];  // by kind
  bool epilogue = false;              // the forward plan computes that, too

  const std::unique_ptr<DnnPlan>& Of(Kind kind) const { return plans[static_cast<int>(kind)]; }
  bool any() const {
    return std::any_of(plans, plans + 3, [](const auto& plan) { return plan != nullptr; });
  }
};

// The call's plans; nullptr: it has none. States that the host prepared are none of these.
const ConvPlans* PlansOf(const KernelContext& ctx, const Queue& queue) {
  if (!ctx.has_state() || queue.dnn() == nullptr) return nullptr;
  const auto* const plans = dynamic_cast<const ConvPlans*>(&ctx.State<KernelState>());
  return plans != nullptr && plans->any() && plans->dtype == ctx.In("Input").dtype() ? plans
                                                                                     : nullptr;
}

// A filter from channels first to channels last.
template <typename T>
struct FilterToLastBody {
  int64_t channels, taps;
  const T* from;
  T* to;
  HEDDLE_BODY void operator()(int64_t i) const {  // of [out, channel, tap]
    const int64_t tap = i % taps, c = i / taps % channels, o = i / taps / channels;
    to[(o * taps + tap) * channels + c] = from[i];
  }
};
// And back, for gradients.
struct FilterFromLastBody {
  int64_t channels, taps;
  const float* from;
  float* to;
  bool add;
  HEDDLE_BODY void operator()(int64_t i) const {
    const int64_t tap = i % taps, c = i / taps % channels, o = i / taps / channels;
    to[i] = (add ? to[i] : 0) + from[(o * taps + tap) * channels + c];
  }
};

Status ToLast(Queue& queue, const ConvShape& g, DType dtype, int64_t size, const void* from,
              void* to) {
  const int64_t channels = g.in_c / g.groups;
  if (SizeOf(dtype) == sizeof(uint16_t))
    return Each(queue, size,
                FilterToLastBody<uint16_t>{channels, g.taps(), static_cast<const uint16_t*>(from),
                                           static_cast<uint16_t*>(to)});
  return Each(queue, size,
              FilterToLastBody<float>{channels, g.taps(), static_cast<const float*>(from),
                                      static_cast<float*>(to)});
}

// Runs one plan. With channels last the library wants the filter so as well, which programs never
// have. A residual in the result's memory is moved out of it: the library does not say that they
// may be the same.
Status RunPlan(Queue& queue, const ConvPlans& s, Kind kind, DnnOperands o, void* result,
               bool add = false) {
  constexpr int64_t kAlign = 64;  // floats
  const auto floats = [](size_t bytes) {
    return static_cast<int64_t>((bytes + sizeof(float) * kAlign - 1) / (sizeof(float) * kAlign)) *
           kAlign;
  };
  const ConvShape& g = s.shape;
  const DnnPlan& plan = *s.Of(kind);
  const int64_t filter = g.out_c * (g.in_c / g.groups) * g.taps();
  const size_t out_bytes = static_cast<size_t>(g.batch * g.out_c * g.out_size()) * SizeOf(s.dtype);
  const int64_t work = floats(plan.workspace_bytes());
  const int64_t last = g.channels_last ? floats(static_cast<size_t>(filter) * SizeOf(s.dtype)) : 0;
  const bool moves = o.residual != nullptr && o.residual == result;
  Scratch scratch(queue);
  HEDDLE_RETURN_IF_ERROR(scratch.Take(work + last + (moves ? floats(out_bytes) : 0)));
  o.workspace = work > 0 ? scratch.data() : nullptr;
  float* const reordered = scratch.data() + work;
  if (moves) {
    HEDDLE_RETURN_IF_ERROR(queue.Copy(reordered + last, o.residual, out_bytes));
    o.residual = reordered + last;
  }
  (kind == Kind::kForward ? o.y : kind == Kind::kInputGrad ? o.x : o.w) = result;
  if (g.channels_last) {
    if (kind != Kind::kFilterGrad)
      HEDDLE_RETURN_IF_ERROR(ToLast(queue, g, s.dtype, filter, o.w, reordered));
    o.w = reordered;
  }
  HEDDLE_RETURN_IF_ERROR(queue.dnn()->Run(plan, o));
  if (!g.channels_last || kind != Kind::kFilterGrad) return Status::Ok();
  return Each(
      queue, filter,
      FilterFromLastBody{g.in_c / g.groups, g.taps(), reordered, static_cast<float*>(result), add});
}

// --- the choice ---

struct Want {
  Kind kind;
  bool add = false;
};

// Asks the library for all of `wants`, or takes none.
bool Plan(Dnn& dnn, DnnConv conv, const std::vector<Want>& wants, ConvPlans* state) {
  for (const Want& want : wants) {
    // The gradient of a filter of channels last is added where it is put in order, in float32.
    const bool later = conv.shape.channels_last && want.kind == Kind::kFilterGrad;
    if (later && conv.dtype != DType::kF32) return false;
    conv.kind = want.kind;
    conv.add = want.add && !later;
    state->plans[static_cast<int>(want.kind)] = dnn.Plan(conv);
    if (state->Of(want.kind) == nullptr) return false;
  }
  return true;
}

std::string Describe(const Dnn& dnn, const ConvPlans& state) {
  std::string text = dnn.name();
  for (const auto& plan : state.plans)
    if (plan != nullptr) text += ", " + plan->name();
  return state.epilogue ? text + ", fused" : text;
}

// `fill` asks the library for plans for the call and puts them into a state; false: it has none.
// heddle's kernel of depthwise convolutions is preferred to the library, its other kernels are not.
template <typename Fill>
Result<std::unique_ptr<KernelState>> Choose(const PrepareContext& ctx, Dnn* dnn, bool depthwise,
                                            const Fill& fill) {
  const std::string own = depthwise ? "depthwise" : "patches";
  auto state = std::make_unique<ConvPlans>();
  const std::vector<std::string>* wanted = nullptr;
  if (ctx.forced() != nullptr) wanted = ctx.forced()->Find("conv");
  std::vector<std::string> names = {own};
  if (dnn != nullptr && (wanted != nullptr || !depthwise) && fill(state.get()) && state->any())
    names.insert(depthwise ? names.end() : names.begin(), dnn->name());
  std::string chosen = names.front();
  if (wanted != nullptr) {
    const auto has = [&](const std::string& name) {
      return std::find(names.begin(), names.end(), name) != names.end();
    };
    const auto at = std::find_if(wanted->begin(), wanted->end(), has);
    if (at == wanted->end()) return CannotForce("conv", *wanted, names);
    chosen = *at;
  }
  if (chosen == own) {
    state = std::make_unique<ConvPlans>();
    state->facts().implementation = own;
  } else {
    state->facts().implementation = Describe(*dnn, *state);
  }
  return std::unique_ptr<KernelState>(std::move(state));
}

// Of a convolution from `in` to `out`: `in` is the result of a transposed one.
Result<std::unique_ptr<KernelState>> ChooseFor(const PrepareContext& ctx, Dnn* dnn, const Shape& in,
                                               const Shape& out, bool transposed,
                                               const std::vector<Want>& wants) {
  const ConvShape g = ConvShapeOf(ctx, in, ctx.InShape("Filter"), out, transposed);
  const bool forward = std::any_of(wants.begin(), wants.end(),
                                   [](const Want& w) { return w.kind == Kind::kForward; });
  const bool depthwise = forward && g.groups > 1 && g.in_c == g.groups;
  return Choose(ctx, dnn, depthwise, [&](ConvPlans* state) {
    state->dtype = ctx.InDType("Input");
    state->shape = g;
    DnnConv conv;
    conv.dtype = state->dtype;
    conv.shape = g;
    return Plan(*dnn, conv, wants, state);
  });
}

bool Wants(const PrepareContext& ctx, Key out) { return ctx.OutVar(out) != nullptr; }

// A clip passes NaN on.
bool IsReluThatKeepsNan(const PrepareContext& ctx) {
  return ctx.Str("fuse_activation") == "clip" && ctx.Float("fuse_alpha") == 0 &&
         ctx.Float("fuse_beta") == INFINITY;
}

// Whether a plan may compute the whole fused operator. cuDNN has fast kernels for a bias, a
// residual before it and relu behind it; for other functions, and without a bias, it has slow ones
// or none, and a kernel of our own behind the convolution is better.
bool FusesEpilogue(const PrepareContext& ctx) {
  const std::string& name = ctx.Str("fuse_activation");
  return ctx.HasIn("Bias") &&
         (name.empty() || name == "identity" || name == "relu" || IsReluThatKeepsNan(ctx)) &&
         ctx.Float("fuse_scale") == 1 && ctx.Float("fuse_shift") == 0;
}

// A result and what it is added to.
Status RunGrad(Queue& queue, KernelContext& ctx, const ConvPlans& s, Kind kind, Key out, Key addend,
               const DnnOperands& o) {
  Tensor* const t = ctx.OutOpt(out);
  if (t == nullptr) return Status::Ok();
  HEDDLE_ASSIGN_OR_RETURN(const bool add, BeginWith(queue, ctx.InOpt(addend), *t));
  return RunPlan(queue, s, kind, o, t->mutable_raw(), add);
}

template <bool kTransposed>
Result<bool> RunFused(Queue& queue, KernelContext& ctx) {
  const ConvPlans* const s = PlansOf(ctx, queue);
  if (s == nullptr) return false;
  Tensor& out = ctx.Out("Output");
  const Tensor *bias = ctx.InOpt("Bias"), *residual = ctx.InOpt("ResidualData");
  DnnOperands o;
  (kTransposed ? o.y : o.x) = ctx.In("Input").raw();
  o.w = ctx.In("Filter").raw();
  if (s->epilogue) {
    if (bias != nullptr) o.bias = bias->raw();
    if (residual != nullptr) o.residual = residual->raw();
    HEDDLE_RETURN_IF_ERROR(RunPlan(queue, *s, Kind::kForward, o, out.mutable_raw()));
    return true;
  }
  HEDDLE_RETURN_IF_ERROR(BeginWith(queue, residual, out).status());
  HEDDLE_ASSIGN_OR_RETURN(const Activation activation, ActivationOf(ctx));
  HEDDLE_RETURN_IF_ERROR(
      RunPlan(queue, *s, kTransposed ? Kind::kInputGrad : Kind::kForward, o, out.mutable_raw()));
  const ConvShape& g = s->shape;
  const int64_t size = kTransposed ? g.in_size() : g.out_size();
  HEDDLE_RETURN_IF_ERROR(RunEpilogue(queue, out.mutable_data<float>(), out.numel(),
                                     bias != nullptr ? bias->data<float>() : nullptr,
                                     g.channels_last ? 1 : size, kTransposed ? g.in_c : g.out_c,
                                     activation, static_cast<float>(ctx.Float("fuse_scale")),
                                     static_cast<float>(ctx.Float("fuse_shift"))));
  return true;
}

}  // namespace

Result<std::unique_ptr<KernelState>> PrepareConv(const PrepareContext& ctx, Dnn* dnn) {
  return ChooseFor(ctx, dnn, ctx.InShape("Input"), ctx.OutShape("Output"), false,
                   {{Kind::kForward}});
}
Result<std::unique_ptr<KernelState>> PrepareConvTranspose(const PrepareContext& ctx, Dnn* dnn) {
  return ChooseFor(ctx, dnn, ctx.OutShape("Output"), ctx.InShape("Input"), true,
                   {{Kind::kInputGrad}});
}
Result<std::unique_ptr<KernelState>> PrepareConvGrad(const PrepareContext& ctx, Dnn* dnn) {
  std::vector<Want> wants;
  if (Wants(ctx, "Input@GRAD")) wants.push_back({Kind::kInputGrad, ctx.HasIn("AddendOfInput")});
  if (Wants(ctx, "Filter@GRAD")) wants.push_back({Kind::kFilterGrad, ctx.HasIn("AddendOfFilter")});
  return ChooseFor(ctx, dnn, ctx.InShape("Input"), ctx.InShape("Output@GRAD"), false, wants);
}
Result<std::unique_ptr<KernelState>> PrepareConvTransposeGrad(const PrepareContext& ctx, Dnn* dnn) {
  std::vector<Want> wants;
  if (Wants(ctx, "Input@GRAD")) wants.push_back({Kind::kForward, ctx.HasIn("AddendOfInput")});
  if (Wants(ctx, "Filter@GRAD")) wants.push_back({Kind::kFilterGrad, ctx.HasIn("AddendOfFilter")});
  return ChooseFor(ctx, dnn, ctx.InShape("Output@GRAD"), ctx.InShape("Input"), true, wants);
}
Result<std::unique_ptr<KernelState>> PrepareFusedConv(const PrepareContext& ctx, Dnn* dnn) {
  const ConvShape g =
      ConvShapeOf(ctx, ctx.InShape("Input"), ctx.InShape("Filter"), ctx.OutShape("Output"), false);
  return Choose(ctx, dnn, g.groups > 1 && g.in_c == g.groups, [&](ConvPlans* state) {
    state->dtype = ctx.InDType("Input");
    state->shape = g;
    DnnConv conv;
    conv.dtype = state->dtype;
    conv.shape = g;
    const bool residual = ctx.HasIn("ResidualData");
    if (FusesEpilogue(ctx)) {
      DnnConv all = conv;
      all.bias = true;
      all.residual = residual;
      all.keep_nan = IsReluThatKeepsNan(ctx);
      all.relu = all.keep_nan || ctx.Str("fuse_activation") == "relu";
      auto& plan = state->plans[static_cast<int>(Kind::kForward)];
      plan = dnn->Plan(all);
      state->epilogue = plan != nullptr;
      if (state->epilogue) return true;
    }
    if (state->dtype != DType::kF32) return false;  // as the kernel of the epilogue
    return Plan(*dnn, conv, {{Kind::kForward, residual}}, state);
  });
}
Result<std::unique_ptr<KernelState>> PrepareFusedConvTranspose(const PrepareContext& ctx,
                                                               Dnn* dnn) {
  if (ctx.InDType("Input") != DType::kF32) dnn = nullptr;  // as the kernel of the epilogue
  return ChooseFor(ctx, dnn, ctx.OutShape("Output"), ctx.InShape("Input"), true,
                   {{Kind::kInputGrad, ctx.HasIn("ResidualData")}});
}

Result<bool> RunPlannedConv(Queue& queue, KernelContext& ctx) {
  const ConvPlans* const s = PlansOf(ctx, queue);
  if (s == nullptr) return false;
  HEDDLE_RETURN_IF_ERROR(RunPlan(queue, *s, Kind::kForward,
                                 {.x = ctx.In("Input").raw(), .w = ctx.In("Filter").raw()},
                                 ctx.Out("Output").mutable_raw()));
  return true;
}
Result<bool> RunPlannedConvTranspose(Queue& queue, KernelContext& ctx) {
  const ConvPlans* const s = PlansOf(ctx, queue);
  if (s == nullptr) return false;
  HEDDLE_RETURN_IF_ERROR(RunPlan(queue, *s, Kind::kInputGrad,
                                 {.w = ctx.In("Filter").raw(), .y = ctx.In("Input").raw()},
                                 ctx.Out("Output").mutable_raw()));
  return true;
}
Result<bool> RunPlannedConvGrad(Queue& queue, KernelContext& ctx) {
  const ConvPlans* const s = PlansOf(ctx, queue);
  if (s == nullptr) return false;
  const void* const x = ctx.In("Input").raw();
  const void* const w = ctx.In("Filter").raw();
  const void* const y = ctx.In("Output@GRAD").raw();
  HEDDLE_RETURN_IF_ERROR(
      RunGrad(queue, ctx, *s, Kind::kInputGrad, "Input@GRAD", "AddendOfInput", {.w = w, .y = y}));
  HEDDLE_RETURN_IF_ERROR(RunGrad(queue, ctx, *s, Kind::kFilterGrad, "Filter@GRAD", "AddendOfFilter",
                                 {.x = x, .y = y}));
  return true;
}
Result<bool> RunPlannedConvTransposeGrad(Queue& queue, KernelContext& ctx) {
  const ConvPlans* const s = PlansOf(ctx, queue);
  if (s == nullptr) return false;
  const void* const x = ctx.In("Output@GRAD").raw();
  const void* const w = ctx.In("Filter").raw();
  const void* const y = ctx.In("Input").raw();
  HEDDLE_RETURN_IF_ERROR(
      RunGrad(queue, ctx, *s, Kind::kForward, "Input@GRAD", "AddendOfInput", {.x = x, .w = w}));
  HEDDLE_RETURN_IF_ERROR(RunGrad(queue, ctx, *s, Kind::kFilterGrad, "Filter@GRAD", "AddendOfFilter",
                                 {.x = x, .y = y}));
  return true;
}
Result<bool> RunPlannedFusedConv(Queue& queue, KernelContext& ctx) {
  return RunFused<false>(queue, ctx);
}
Result<bool> RunPlannedFusedConvTranspose(Queue& queue, KernelContext& ctx) {
  return RunFused<true>(queue, ctx);
}

}  // namespace heddle::HEDDLE_GRID
