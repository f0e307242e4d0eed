// fused_products: several matrix products of one tensor, each with its epilogue. An operator of
// heddle, made by a fusion pass.
#include <array>
#include <span>
#include <string>
#include <vector>

#include "core/shapes.h"
#include "kernels/gemm/gemm_matmul.h"

namespace heddle {
namespace {

struct ProductsState final : KernelState {
  std::vector<std::unique_ptr<GemmRunner>> runners;
  std::vector<int> biases;  // of each product: its place in the list; -1: none
  bool together = false;
};

// The factors that X is multiplied by, one an output.
int Count(const OpContext& ctx) { return ctx.InCount("Y"); }

bool TransY(const OpContext& ctx, int i) {
  return ctx.IntList("trans_y")[static_cast<size_t>(i)] != 0;
}

// The index of product `i`'s bias in the list; -1: it has none.
int BiasOf(const OpContext& ctx, int i) {
  return static_cast<int>(ctx.IntList("biases")[static_cast<size_t>(i)]);
}

Status CheckLists(const OpContext& ctx) {
  const auto count = static_cast<size_t>(Count(ctx));
  const size_t lengths[] = {static_cast<size_t>(ctx.OutCount("Out")),
                            ctx.IntList("trans_y").size(),
                            ctx.IntList("biases").size(),
                            ctx.Attr<Strings>("activations").size(),
                            ctx.Attr<Floats>("alphas").size(),
                            ctx.Attr<Floats>("betas").size()};
  for (const size_t length : lengths)
    if (length != count || count == 0)
      return InvalidArgument("Y names ", count, " tensors, but a list beside it has ", length);
  for (const int64_t bias : ctx.IntList("biases"))
    if (bias >= ctx.InCount("Bias"))
      return InvalidArgument("biases names Bias [", bias, "] of ", ctx.InCount("Bias"));
  return Status::Ok();
}

Status ProductsShape(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckLists(ctx));
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank()) return ctx.Defer();
  for (int i = 0; i < Count(ctx); ++i) {
    const Shape& y = ctx.InShape("Y", i);
    if (!y.known_rank()) return ctx.Defer();
    if (ctx.InDType("Y", i) != ctx.InDType("X"))
      return InvalidArgument("Y [", i, "] is ", Name(ctx.InDType("Y", i)), ", but X is ",
                             Name(ctx.InDType("X")));
    HEDDLE_ASSIGN_OR_RETURN(const MatmulShapes s, MatmulShapesOf(x, y, false, TransY(ctx, i)));
    if (const int b = BiasOf(ctx, i); b >= 0 && ctx.InShape("Bias", b).is_static() && s.n >= 0 &&
                                      ctx.InShape("Bias", b).numel() != s.n)
      return InvalidArgument("Bias [", b, "] has shape ", ctx.InShape("Bias", b).ToString(),
                             ", expected ", s.n, " elements");
    ctx.SetOut("Out", s.result, ctx.InDType("X"), i);
    ctx.SetOutLoD("Out", ctx.InLoD("X"), i);
  }
  return Status::Ok();
}

Result<std::unique_ptr<KernelState>> PrepareProducts(PrepareContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckLists(ctx));
  auto state = std::make_unique<ProductsState>();
  state->together = true;
  bool packed = true;
  std::string names;
  for (int i = 0; i < Count(ctx); ++i) {
    HEDDLE_ASSIGN_OR_RETURN(
        const MatmulShapes s,
        MatmulShapesOf(ctx.InShape("X"), ctx.InShape("Y", i), false, TransY(ctx, i)));
    const auto at = static_cast<size_t>(i);
    HEDDLE_ASSIGN_OR_RETURN(
        const Epilogue epilogue,
        ParseEpilogue(ctx.Attr<Strings>("activations")[at], ctx.Attr<Floats>("alphas")[at],
                      ctx.Attr<Floats>("betas")[at], BiasOf(ctx, i) >= 0, false));
    HEDDLE_ASSIGN_OR_RETURN(std::unique_ptr<GemmRunner> runner,
                            MakeGemm(ctx, PlanOut(s), 1.f, ctx.ConstIn("Y", i), epilogue));
    state->together = state->together && runner->joins_others();
    packed = packed && !runner->reads_b();
    names += (i > 0 ? " + " : "") + runner->name();
    state->runners.push_back(std::move(runner));
    state->biases.push_back(BiasOf(ctx, i));
  }
  state->facts().implementation =
      state->together ? StrCat(Count(ctx), " together, ", state->runners[0]->name()) : names;
  if (packed) ctx.MarkPacked("Y", state.get());
  state->facts().prefetch = state->runners[0]->ReadsFirst();
  return std::unique_ptr<KernelState>(std::move(state));
}

Status RunProducts(KernelContext& ctx) {
  const auto& state = ctx.State<ProductsState>();
  const float* const x = ctx.In("X").data<float>();
  const auto part = [&](int i) {
    const int bias = state.biases[static_cast<size_t>(i)];
    return GemmPart{bias < 0 ? nullptr : ctx.In("Bias", bias).data<float>(),
                    ctx.Out("Out", i).mutable_data<float>()};
  };
  const auto count = static_cast<int>(state.biases.size());
  constexpr int kMost = 16;
  std::array<GemmPart, kMost> parts;
  if (state.together && count <= kMost) {
    for (int i = 0; i < count; ++i) parts[static_cast<size_t>(i)] = part(i);
    RunTogether(ctx, state.runners, x, std::span(parts).first(static_cast<size_t>(count)));
    return Status::Ok();
  }
  for (int i = 0; i < count; ++i) {
    const GemmPart p = part(i);
    state.runners[static_cast<size_t>(i)]->Run(ctx, x, ctx.In("Y", i).data<float>(), p.bias,
                                               nullptr, p.c);
  }
  return Status::Ok();
}

double ProductsCost(const ShapeContext& ctx) {
  double work = 0;
  for (int i = 0; i < Count(ctx); ++i) {
    const Result<MatmulShapes> s =
        MatmulShapesOf(ctx.InShape("X"), ctx.InShape("Y", i), false, TransY(ctx, i));
    if (!s.ok() || !s->out.is_static()) return 0;
    work += static_cast<double>(s->out.numel()) * static_cast<double>(s->k);
  }
  return 80 + work / 40;
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(fused_products) {
  op.Doc(
      "For each Y: activation(X op(Y) + Bias along the last dimension). Attributes have one item a "
      "product: trans_y (not 0: Y is transposed), biases (its item of Bias, or -1), activations, "
      "and the activation's constants alphas and betas, which are those of fused_conv2d");
  op.Input("X").Input("Y", kList).Input("Bias", kList | kOptional).Output("Out", kList);
  op.Attr("trans_y", Ints{}).Attr("biases", Ints{}).Attr("activations", Strings{});
  op.Attr("alphas", Floats{}).Attr("betas", Floats{});
  op.InferShape(ProductsShape).Prepare(PrepareProducts);
  op.Cost(ProductsCost).Kernel(DType::kF32, RunProducts);
}
