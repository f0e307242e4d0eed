// heddle's own: a matrix product with what follows it. The fusion passes make it.
#include "core/packing_state.h"
#include "core/shapes.h"
#include "kernels/common/gemm_matmul.h"
#include "kernels/common/spread_residual.h"

namespace heddle {
namespace {

struct FusedMatmulState final : PackingState {
  std::unique_ptr<GemmRunner> runner;
  std::optional<Epilogue> late;  // what comes behind a residual of another batch
  Shape product;
};

Result<MatmulShapes> View(const OpContext& ctx, const Shape& x, const Shape& y) {
  return MatmulShapesOf(x, y, ctx.Bool("trans_x"), ctx.Bool("trans_y"));
}

Status FusedMatmulShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  const Shape& y = ctx.InShape("Y");
  if (!x.known_rank() || !y.known_rank()) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const MatmulShapes s, View(ctx, x, y));
  if (ctx.HasIn("Bias") && ctx.InShape("Bias").is_static() && s.n >= 0 &&
      ctx.InShape("Bias").numel() != s.n)
    return InvalidArgument("Bias has shape ", ctx.InShape("Bias").ToString(), ", expected ", s.n,
                           " elements");
  Shape out = s.result;
  if (ctx.HasIn("ResidualData") && ctx.InShape("ResidualData").is_static() && out.is_static()) {
    HEDDLE_ASSIGN_OR_RETURN(out, ResidualSum(out, ctx.InShape("ResidualData")));
  }
  ctx.SetOut("Out", out, ctx.InDType("X"));
  ctx.ShareLoD("X", "Out");
  return Status::Ok();
}

Result<std::unique_ptr<KernelState>> PrepareFusedMatmul(PrepareContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const MatmulShapes s, View(ctx, ctx.InShape("X"), ctx.InShape("Y")));
  HEDDLE_ASSIGN_OR_RETURN(
      Epilogue epilogue,
      ParseEpilogue(ctx.Str("fuse_activation"), ctx.Float("fuse_alpha"), ctx.Float("fuse_beta"),
                    ctx.HasIn("Bias"), ctx.HasIn("ResidualData")));
  epilogue.bf16 = ctx.Bool("fuse_bf16");
  epilogue.int8 = ctx.Bool("fuse_int8");
  auto state = std::make_unique<FusedMatmulState>();
  state->product = s.result;
  if (ctx.HasIn("ResidualData") && !(ctx.InShape("ResidualData") == s.result))
    state->late = TakeFromResidual(&epilogue);
  state->runner =
      MakeGemm(ctx, PlanOut(s), static_cast<float>(ctx.Float("alpha")), ctx.ConstIn("Y"), epilogue);
  if (!state->runner->reads_b()) state->HasPacked(ctx, "Y");
  return std::unique_ptr<KernelState>(std::move(state));
}

Status RunFusedMatmul(KernelContext& ctx) {
  const Tensor* bias = ctx.InOpt("Bias");
  const Tensor* residual = ctx.InOpt("ResidualData");
  const auto& state = ctx.State<FusedMatmulState>();
  float* out = ctx.Out("Out").mutable_data<float>();
  Tensor product = state.late ? ctx.CallScratch(DType::kF32, state.product) : Tensor();
  state.runner->Run(ctx, ctx.In("X").data<float>(), ctx.In("Y").data<float>(),
                    bias ? bias->data<float>() : nullptr,
                    residual && !state.late ? residual->data<float>() : nullptr,
                    state.late ? product.mutable_data<float>() : out);
  if (state.late)
    SpreadResidual(*state.late, state.product, product.data<float>(), residual->shape(),
                   residual->data<float>(), out);
  return Status::Ok();
}

double FusedMatmulCost(const ShapeContext& ctx) {
  const Result<MatmulShapes> s = View(ctx, ctx.InShape("X"), ctx.InShape("Y"));
  if (!s.ok() || !s->out.is_static()) return 0;
  return 80 + static_cast<double>(s->out.numel()) * static_cast<double>(s->k) / 40;
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(fused_matmul) {
  op.Doc(
      "activation(alpha op(X) op(Y) + Bias along the last dimension + ResidualData), where the product "
      "or ResidualData may have a batch of 1; the "
      "activation's constants and fuse_bf16 (for a constant Y) are those of fused_conv2d. fuse_int8: a "
      "constant Y is rounded to integers of 8 bits times a factor for each 128 of a column");
  op.Input("X").Input("Y").Input("Bias", kOptional).Input("ResidualData", kOptional);
  op.Output("Out");
  op.Attr("trans_x", false).Attr("trans_y", false).Attr("alpha", 1.0);
  op.Attr("fuse_activation", "").Attr("fuse_alpha", 0.0).Attr("fuse_beta", 0.0);
  op.Attr("fuse_bf16", false).Attr("fuse_int8", false);
  op.Inplace("ResidualData", "Out").InferShape(FusedMatmulShape).Prepare(PrepareFusedMatmul);
  op.Cost(FusedMatmulCost).Kernel(DType::kF32, RunFusedMatmul);
}
