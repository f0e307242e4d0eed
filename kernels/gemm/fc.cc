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

HEDDLE_EXAMPLES(fc, R"(
example float32 1x1x4, in_num_col_dims 2
attr in_num_col_dims INT 2
in Input float32 [1, 1, 4] -0.15 -0.39 -0.62 0.08
in W float32 [4, 1] -0.29 -0.582 -0.729 -0.436
out Out float32 [1, 1, 1] 0.68758005

example float32 4x3
in Input float32 [2, 4, 1, 1] 0.674 0.367 0.571 0.776 0.162 0.469 0.264 0.878
in W float32 [4, 3] 0.468 0.92 0.845 0.694 0.543 0.393 0.619 0.167 0.317 0.091 0.769 0.242
out Out float32 [2, 3] 0.994195 1.5114621 1.0825601 0.644616 1.122977 0.617371

example float32 6x3
in Input float32 [6, 3] 0.24 -0.85 0.73 -0.55 -0.26 -0.36 0.54 0.34 0.64 -0.46 -0.75 0.04 0.44 -0.65
  0.14 -0.06 0.83 -0.16
in W float32 [3, 1] 0.622 0.616 0.729
out Out float32 [6, 1] 0.15785003 -0.76469994 1.01188 -0.71896 -0.024659984 0.35732

example float64 1x1x4, in_num_col_dims 2
attr in_num_col_dims INT 2
in Input float64 [1, 1, 4] -0.15 -0.39 -0.62 0.08
in W float64 [4, 1] -0.29 -0.582 -0.729 -0.436
out Out float64 [1, 1, 1] 0.68758
)")
