#include "core/interrupts.h"
#include "core/shapes.h"
#include "kernels/gemm/gemm_matmul.h"

namespace heddle {
namespace {

constexpr int64_t kPadding = 4;  // rows and columns that padded weights have too many

struct FcState final : KernelState {
  std::unique_ptr<GemmRunner> runner;
  BatchedGemm gemm;
  Epilogue epilogue;
};

struct Sizes {
  int64_t rows = 1, k = 1, n = 0, pad = 0;
};

Result<Sizes> SizesOf(const OpContext& ctx, const Shape& input, const Shape& w) {
  const int64_t cols = ctx.Int("in_num_col_dims");
  if (cols < 1 || cols >= input.rank() || w.rank() != 2)
    return InvalidArgument("Input ", input.ToString(), " with in_num_col_dims = ", cols, " and W ",
                           w.ToString(), " do not go together");
  Sizes s;
  s.pad = ctx.Bool("padding_weights") ? kPadding : 0;
  for (int i = 0; i < input.rank(); ++i) {
    int64_t& to = i < cols ? s.rows : s.k;
    to = input[i] < 0 || to < 0 ? -1 : to * input[i];
  }
  s.n = w[1] < 0 ? -1 : w[1] - s.pad;
  if (s.k >= 0 && w[0] >= 0 && s.k != w[0] - s.pad)
    return InvalidArgument("Input ", input.ToString(), " has rows of ", s.k, " elements, W ",
                           w.ToString(), " expects ", w[0] - s.pad);
  return s;
}

Status FcShape(ShapeContext& ctx) {
  const Shape& input = ctx.InShape("Input");
  if (!input.known_rank() || !ctx.InShape("W").known_rank()) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const Sizes s, SizesOf(ctx, input, ctx.InShape("W")));
  if (ctx.HasIn("Bias") && ctx.InShape("Bias").is_static() && s.n >= 0 &&
      ctx.InShape("Bias").numel() != s.n)
    return InvalidArgument("Bias has shape ", ctx.InShape("Bias").ToString(), ", expected ", s.n,
                           " elements");
  Shape out;
  for (int i = 0; i < ctx.Int("in_num_col_dims"); ++i) out.push_back(input[i]);
  out.push_back(s.n);
  ctx.SetOut("Out", out, ctx.InDType("Input"));
  ctx.ShareLoD("Input", "Out");
  return Status::Ok();
}

Result<std::unique_ptr<KernelState>> PrepareFc(PrepareContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const Sizes s, SizesOf(ctx, ctx.InShape("Input"), ctx.InShape("W")));
  const std::string& activation = ctx.Str("activation_type");
  if (!activation.empty() && activation != "relu")
    return InvalidArgument("activation_type is '", activation, "', expected '' or relu");
  auto state = std::make_unique<FcState>();
  HEDDLE_ASSIGN_OR_RETURN(state->epilogue,
                          ParseEpilogue(activation, 0, 0, ctx.HasIn("Bias"), false));
  state->gemm = PlanBatchedGemm({}, {}, {}, GemmDims::Dense(s.rows, s.n, s.k));
  state->gemm.one.ldb = s.n + s.pad;
  if (ctx.InDType("Input") == DType::kF32) {
    HEDDLE_ASSIGN_OR_RETURN(state->runner,
                            MakeGemm(ctx, state->gemm, 1.f, ctx.ConstIn("W"), state->epilogue));
    state->facts().implementation = state->runner->name();
    if (!state->runner->reads_b()) ctx.MarkPacked("W", state.get());
    state->facts().prefetch = state->runner->ReadsFirst();
  }
  return std::unique_ptr<KernelState>(std::move(state));
}

template <typename T>
struct Fc {
  static Status Run(KernelContext& ctx) {
    const FcState& state = ctx.State<FcState>();
    const Tensor* bias = ctx.InOpt("Bias");
    Tensor& out = ctx.Out("Out");
    if constexpr (std::is_same_v<T, float>) {
      state.runner->Run(ctx, ctx.In("Input").data<float>(), ctx.In("W").data<float>(),
                        bias ? bias->data<float>() : nullptr, nullptr, out.mutable_data<float>());
    } else {
      T* to = out.mutable_data<T>();
      state.gemm.Run(ctx, T(1), ctx.In("Input").data<T>(), ctx.In("W").data<T>(), to);
      const int64_t n = state.gemm.one.n;
      const bool relu = state.epilogue.activation == Activation::kRelu;
      for (const auto part : Stretches(out.numel()))
        for (int64_t i = part.begin; i < part.end; ++i) {
          if (bias) to[i] += bias->data<T>()[i % n];
          if (relu && to[i] < T(0)) to[i] = T(0);
        }
    }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(fc) {
  op.Doc("fully connected layer: Input W + Bias, with an optional relu");
  op.Input("Input").Input("W").Input("Bias", kOptional).Output("Out");
  op.Attr("in_num_col_dims", 1).Attr("activation_type", "").Attr("padding_weights", false);
  op.InferShape(FcShape).Prepare(PrepareFc).Kernels<Fc, float, double>();
}
