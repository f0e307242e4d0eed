// fused_conv_chain: pointwise and depthwise convolutions in sequence. An operator of heddle, made
// by passes/fuse/fuse_conv_chain.cc.
#include "core/shapes.h"
#include "kernels/base/implementations.h"
#include "kernels/conv/conv_chain.h"
#include "kernels/gemm/spread_residual.h"
#include "kernels/simd/microkernels.h"

namespace heddle {
namespace {

struct ConvChainState final : KernelState {
  std::unique_ptr<ConvChain> chain;
  // Without stripes: one after the other, with complete intermediate results.
  std::vector<std::unique_ptr<ConvRunner>> runners;
  std::vector<int64_t> between;  // offsets of the intermediate results in floats, and their end
  std::optional<Epilogue> late;  // the epilogue after a residual with another batch size
  Shape product;
};

// A kernel 1x1 is a pointwise convolution, any other one depthwise. Dimensions may be -1.
Result<ConvGeometry> StageGeometry(const OpContext& ctx, size_t i, const Shape& input,
                                   const Shape& filter) {
  const Ints &strides = ctx.IntList("strides"), &pads = ctx.IntList("paddings");
  if (filter.rank() != 4 || !filter.is_static() || filter.numel() == 0)
    return InvalidArgument("Filters[", i, "] has shape ", filter.ToString());
  ConvGeometry g;
  g.channels_last = true;
  g.batch = input[0];
  g.out_c = filter[0];
  g.groups = filter[2] * filter[3] == 1 ? 1 : g.out_c;
  g.in_c = filter[1] * g.groups;
  if (input[3] >= 0 && input[3] != g.in_c)
    return InvalidArgument("stage ", i, " is given ", input[3], " channels, and its filter ",
                           filter.ToString(), " expects ", g.in_c);
  for (size_t d = 1; d < 3; ++d) {
    g.in[d] = input[static_cast<int>(d)];
    g.kernel[d] = filter[static_cast<int>(d) + 1];
    g.stride[d] = strides[2 * i + d - 1];
    g.pad_lo[d] = pads[4 * i + 2 * (d - 1)];
    g.pad_hi[d] = pads[4 * i + 2 * (d - 1) + 1];
    if (g.stride[d] < 1) return InvalidArgument("strides holds ", g.stride[d]);
    const int64_t room = g.in[d] + g.pad_lo[d] + g.pad_hi[d] - g.kernel[d];
    if (g.in[d] >= 0 && room < 0)
      return InvalidArgument("the kernel is larger than the padded input of stage ", i, ": ",
                             input.ToString(), ", filter ", filter.ToString());
    g.out[d] = g.in[d] < 0 ? -1 : room / g.stride[d] + 1;
  }
  return g;
}

// shape(i): the shape of filter i.
template <typename ShapeOf>
Result<std::vector<ConvGeometry>> Geometries(const OpContext& ctx, const Shape& input,
                                             ShapeOf shape) {
  const size_t n = static_cast<size_t>(ctx.InCount("Filters"));
  if (n == 0 || ctx.InCount("Biases") != static_cast<int>(n) ||
      ctx.IntList("strides").size() != 2 * n || ctx.IntList("paddings").size() != 4 * n ||
      ctx.Attr<Strings>("fuse_activation").size() != n)
    return InvalidArgument("Filters, Biases and attributes are not of one number of stages");
  for (const Key key : {Key("fuse_alpha"), Key("fuse_beta"), Key("fuse_scale"), Key("fuse_shift")})
    if (ctx.Attr<Floats>(key).size() != n)
      return InvalidArgument(key.name, " is not one number for each stage");
  if (input.rank() != 4)
    return InvalidArgument("Input has shape ", input.ToString(), ", expected rank 4");
  std::vector<ConvGeometry> stages;
  Shape at = input;
  for (size_t i = 0; i < n; ++i) {
    HEDDLE_ASSIGN_OR_RETURN(const ConvGeometry g,
                            StageGeometry(ctx, i, at, shape(static_cast<int>(i))));
    at = ConvOutShape(g);
    stages.push_back(g);
  }
  return stages;
}

Status ChainShape(ShapeContext& ctx) {
  if (!ctx.InShape("Input").known_rank()) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<ConvGeometry> stages,
                          Geometries(ctx, ctx.InShape("Input"), [&](int i) -> const Shape& {
                            return ctx.InShape("Filters", i);
                          }));
  for (size_t i = 0; i < stages.size(); ++i)
    if (const Shape& bias = ctx.InShape("Biases", static_cast<int>(i));
        bias.is_static() && bias.numel() != stages[i].out_c)
      return InvalidArgument("Biases[", i, "] has shape ", bias.ToString(), ", expected ",
                             stages[i].out_c, " elements");
  Shape out = ConvOutShape(stages.back());
  if (ctx.HasIn("ResidualData") && ctx.InShape("ResidualData").is_static() && out.is_static()) {
    HEDDLE_ASSIGN_OR_RETURN(out, ResidualSum(out, ctx.InShape("ResidualData")));
  }
  ctx.SetOut("Output", out, ctx.InDType("Input"));
  return Status::Ok();
}

Result<Epilogue> StageEpilogue(const PrepareContext& ctx, size_t i, bool residual) {
  HEDDLE_ASSIGN_OR_RETURN(
      Epilogue e,
      ParseEpilogue(ctx.Attr<Strings>("fuse_activation")[i], ctx.Attr<Floats>("fuse_alpha")[i],
                    ctx.Attr<Floats>("fuse_beta")[i], true, residual));
  e.bf16 = ctx.Bool("fuse_bf16");
  e.int8 = ctx.Bool("fuse_int8");
  e.scale *= static_cast<float>(ctx.Attr<Floats>("fuse_scale")[i]);
  e.shift = static_cast<float>(ctx.Attr<Floats>("fuse_shift")[i]);
  return e;
}

// A way to compute a chain. The first that covers the chain and is cheaper is taken; else its
// convolutions run one after another.
struct ChainImplementation {
  const char* name;
  bool (*covers)(const std::vector<ChainStage>& stages, const Machine& m);
  bool (*cheaper)(const std::vector<ChainStage>& stages);
  std::unique_ptr<ConvChain> (*make)(const PrepareContext& ctx,
                                     const std::vector<ChainStage>& stages);
};
constexpr ChainImplementation kChainImplementations[] = {
    {"pair_int8", Int8PairCovers, Int8PairIsCheaper, MakeInt8Pair},
    {"pair", PairCovers, PairIsCheaper, MakePointwisePair},
    {"stripes", StripesCover, StripesAreCheaper, MakeConvChain},
};
constexpr char kApart[] = "convolutions";

// Null: one convolution after another.
Result<const ChainImplementation*> ChooseChain(const PrepareContext& ctx,
                                               const std::vector<ChainStage>& stages) {
  const auto* wanted = ctx.forced() != nullptr ? ctx.forced()->Find("conv_chain") : nullptr;
  ImplementationChoice choice;
  choice.family = "conv_chain";
  std::vector<const ChainImplementation*> covering;
  const ChainImplementation* cheapest = nullptr;
  for (const ChainImplementation& i : kChainImplementations) {
    if (!i.covers(stages, MachineOr(ctx.machine()))) continue;
    covering.push_back(&i);
    choice.candidates.push_back({i.name, 0, 0});
    if (cheapest == nullptr && i.cheaper(stages)) cheapest = &i;
  }
  choice.candidates.push_back({kApart, 0, 0});
  const auto note = [&](const ChainImplementation* chosen, const char* reason) {
    choice.chosen = chosen != nullptr ? chosen->name : kApart;
    choice.reason = reason;
    LogOf(ctx.packs()).Note(&ctx.op(), std::move(choice));
    return chosen;
  };
  if (wanted == nullptr) return note(cheapest, covering.empty() ? "only" : "cost");
  for (const std::string& name : *wanted) {
    if (name == kApart) return note(nullptr, "forced");
    for (const ChainImplementation* i : covering)
      if (name == i->name) return note(i, "forced");
  }
  std::vector<std::string> names;
  for (const auto& candidate : choice.candidates) names.push_back(candidate.name);
  return CannotForce("conv_chain", *wanted, names);
}

Result<std::unique_ptr<KernelState>> PrepareChain(PrepareContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<ConvGeometry> geometries,
                          Geometries(ctx, ctx.InShape("Input"), [&](int i) -> const Shape& {
                            return ctx.InShape("Filters", i);
                          }));
  auto state = std::make_unique<ConvChainState>();
  std::vector<ChainStage> stages;
  for (size_t i = 0; i < geometries.size(); ++i) {
    const bool residual = i + 1 == geometries.size() && ctx.HasIn("ResidualData");
    HEDDLE_ASSIGN_OR_RETURN(const Epilogue epilogue, StageEpilogue(ctx, i, residual));
    stages.push_back({geometries[i], epilogue, ctx.ConstIn("Filters", static_cast<int>(i))});
  }
  state->product = ConvOutShape(geometries.back());
  if (ctx.HasIn("ResidualData") && !(ctx.InShape("ResidualData") == state->product))
    state->late = TakeFromResidual(&stages.back().epilogue);
  HEDDLE_ASSIGN_OR_RETURN(const ChainImplementation* const chosen, ChooseChain(ctx, stages));
  bool reads = false;
  if (chosen != nullptr) {
    state->facts().implementation =
        StrCat(chosen->name, ", ", simd::VectorsOf(MachineOr(ctx.machine())));
    if (ctx.machine() == nullptr) state->chain = chosen->make(ctx, stages);
  } else {
    state->between.push_back(0);
    std::string& name = state->facts().implementation = kApart;
    for (const ChainStage& s : stages) {
      HEDDLE_ASSIGN_OR_RETURN(auto runner, MakeConv(ctx, s.geometry, DType::kF32,
                                                    ConvDirection::kForward, s.filter, s.epilogue));
      state->runners.push_back(std::move(runner));
      name += (state->runners.size() == 1 ? ": " : "; ") + state->runners.back()->name();
      reads = reads || state->runners.back()->reads_filter();
      constexpr int64_t kAlign = 16;
      state->between.push_back(state->between.back() +
                               (ConvOutShape(s.geometry).numel() + kAlign - 1) / kAlign * kAlign);
    }
    state->between.pop_back();  // the last one's is the output
  }
  if (!reads) ctx.MarkPacked("Filters", state.get());
  return std::unique_ptr<KernelState>(std::move(state));
}

void RunApart(const KernelContext& ctx, const ConvChainState& state, const float* residual,
              float* out) {
  Tensor between = ctx.Scratch(DType::kF32, {state.between.back()});
  const void* from = ctx.In("Input").raw();
  for (size_t i = 0; i < state.runners.size(); ++i) {
    const bool last = i + 1 == state.runners.size();
    float* const to = last ? out : between.mutable_data<float>() + state.between[i];
    state.runners[i]->Run(ctx, {.src = from,
                                .filter = ctx.In("Filters", static_cast<int>(i)).raw(),
                                .bias = ctx.In("Biases", static_cast<int>(i)).raw(),
                                .residual = last ? residual : nullptr,
                                .dst = to});
    from = to;
  }
}

Status RunChain(KernelContext& ctx) {
  const auto& state = ctx.State<ConvChainState>();
  const Tensor* residual = ctx.InOpt("ResidualData");
  float* const out = ctx.Out("Output").mutable_data<float>();
  Tensor product = state.late ? ctx.Scratch(DType::kF32, state.product) : Tensor();
  float* const to = state.late ? product.mutable_data<float>() : out;
  const float* const add = residual && !state.late ? residual->data<float>() : nullptr;
  if (state.chain) {
    std::array<const float*, kMostChainStages> biases{};
    for (int i = 0; i < ctx.InCount("Biases"); ++i)
      biases[static_cast<size_t>(i)] = ctx.In("Biases", i).data<float>();
    state.chain->Run(ctx, ctx.In("Input").data<float>(), biases, add, to);
  } else {
    RunApart(ctx, state, add, to);
  }
  if (state.late)
    SpreadResidual(*state.late, state.product, product.data<float>(), residual->shape(),
                   residual->data<float>(), out);
  return Status::Ok();
}

double ChainCost(const ShapeContext& ctx) {
  if (!ctx.InShape("Input").is_static()) return 0;
  const auto stages = Geometries(ctx, ctx.InShape("Input"),
                                 [&](int i) -> const Shape& { return ctx.InShape("Filters", i); });
  if (!stages.ok()) return 0;
  double work = 0;
  for (const ConvGeometry& g : *stages) work += g.work();
  const double elements = static_cast<double>(ConvInShape(stages->front()).numel() +
                                              ConvOutShape(stages->back()).numel());
  return 1000 + std::max(work / 40, elements / 4);  // as ConvCost
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(fused_conv_chain) {
  op.Doc(
      "fused_conv2d one behind the other, channels last: those with kernels 1x1 in one group, all "
      "others depthwise. Each has a filter, a bias and its part of the attributes: two strides, "
      "four "
      "paddings (top, bottom, left, right) and what fused_conv2d calls by the same names. "
      "ResidualData is the last one's. Rows in between are made when they are needed. fuse_bf16: "
      "constant Filters and what they are multiplied with may be rounded to bfloat16; fuse_int8: "
      "to "
      "8-bit integers, a constant filter with a factor for each output channel, what it is "
      "multiplied "
      "with by one for each pixel");
  op.Input("Input").Input("Filters", kList).Input("Biases", kList);
  op.Input("ResidualData", kOptional).Output("Output");
  op.Attr("strides", Ints{}).Attr("paddings", Ints{}).Attr("fuse_activation", Strings{});
  op.Attr("fuse_alpha", Floats{}).Attr("fuse_beta", Floats{});
  op.Attr("fuse_scale", Floats{}).Attr("fuse_shift", Floats{}).Attr("fuse_bf16", false);
  op.Attr("fuse_int8", false);
  op.InferShape(ChainShape).Cost(ChainCost).Prepare(PrepareChain);
  op.Contract("Input: float32; Filters, Biases, ResidualData: as Input");
  op.Kernel(DType::kF32, RunChain);
}
