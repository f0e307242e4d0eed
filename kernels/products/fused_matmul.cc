// fused_matmul: a matrix product with its epilogue. An operator of heddle, made by fusion passes.
#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "core/machine.h"
#include "core/operands/window.h"
#include "core/shapes.h"
#include "kernels/base/convert.h"
#include "kernels/gemm/gemm_matmul.h"
#include "kernels/gemm/spread_residual.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

struct FusedMatmulState final : KernelState {
  std::unique_ptr<GemmRunner> runner;
  bool pieces = false;           // X is read from its pieces, without joining them
  bool gathers = false;          // X has gaps between its rows, and is copied
  int64_t rows = 0;              // of X, when it is one tensor
  std::optional<Epilogue> late;  // the epilogue after a residual with another batch size
  Shape product;
};

Result<MatmulShapes> View(const OpContext& ctx, const Shape& x, const Shape& y) {
  return MatmulShapesOf(x, y, ctx.Bool("trans_x"), ctx.Bool("trans_y"));
}

// Shape of X, whose pieces are concatenated along the last dimension; its rank is unknown where
// the rank of a piece is.
template <typename Context>
Result<Shape> WholeX(const Context& ctx) {
  const int count = ctx.InCount("X");
  if (count == 0) return InvalidArgument("'X' names no tensor");
  Shape whole = ctx.InShape("X");
  if (count == 1 || !whole.known_rank()) return whole;
  const int last = whole.rank() - 1;
  if (last < 1 || ctx.Bool("trans_x"))
    return InvalidArgument("pieces of X need two dimensions, and trans_x = false");
  whole[last] = 0;
  for (int i = 0; i < count; ++i) {
    const Shape& piece = ctx.InShape("X", i);
    if (!piece.known_rank()) return piece;
    bool fits = piece.rank() == last + 1;
    for (int d = 0; fits && d < last; ++d) {
      fits = piece[d] == whole[d] || piece[d] < 0 || whole[d] < 0;
      if (whole[d] < 0) whole[d] = piece[d];
    }
    if (!fits)
      return InvalidArgument("X [", i, "] of shape ", piece.ToString(),
                             " cannot lie beside X [0] of ", ctx.InShape("X").ToString());
    whole[last] = whole[last] < 0 || piece[last] < 0 ? -1 : whole[last] + piece[last];
  }
  return whole;
}

Status FusedMatmulShape(ShapeContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const Shape x, WholeX(ctx));
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
  const bool floats = ctx.Bool("fuse_float_out");
  const DType dtype = ctx.InDType("X");
  if (floats && dtype != DType::kF16 && dtype != DType::kBF16)
    return InvalidArgument("fuse_float_out is for X of 16 bits, but X is ", Name(dtype));
  ctx.SetOut("Out", out, floats ? DType::kF32 : dtype);
  ctx.ShareLoD("X", "Out");
  return Status::Ok();
}

Result<std::unique_ptr<KernelState>> PrepareFusedMatmul(PrepareContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const Shape x, WholeX(ctx));
  for (int i = 1; i < ctx.InCount("X"); ++i)
    if (ctx.InDType("X", i) != ctx.InDType("X"))
      return InvalidArgument("X [", i, "] is ", Name(ctx.InDType("X", i)), ", but X [0] is ",
                             Name(ctx.InDType("X")));
  HEDDLE_ASSIGN_OR_RETURN(const MatmulShapes s, View(ctx, x, ctx.InShape("Y")));
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
  BatchedGemm product = PlanOut(s);
  const bool half = ctx.InDType("X") == DType::kF16 || ctx.InDType("X") == DType::kBF16;
  const Tensor& first = ctx.InVar("X")->tensor();
  if (!half && !first.is_contiguous()) {  // RunInFloat leaves no gaps
    state->gathers = ctx.InCount("X") > 1 || product.batch != 1 || product.one.trans_a;
    if (!state->gathers) product.one.lda = RowStep(first, first.rank() - 1);
  }
  std::vector<int64_t> widths;
  for (int i = 0; i < ctx.InCount("X"); ++i) widths.push_back(ctx.InShape("X", i).dim(-1));
  state->pieces = widths.size() > 1 && PiecesPay(product.one, widths, MachineOr(ctx.machine()));
  state->rows = x.Product(0, x.rank() - 1);
  const GemmUse use{.piece = state->pieces ? *std::ranges::max_element(widths) : 0};
  HEDDLE_ASSIGN_OR_RETURN(state->runner,
                          MakeGemm(ctx, product, static_cast<float>(ctx.Float("alpha")),
                                   half ? nullptr : ctx.ConstIn("Y"), epilogue, use));
  state->facts().implementation = state->runner->name();
  if (!state->runner->reads_b()) ctx.MarkPacked("Y", state.get());
  state->facts().prefetch = state->runner->ReadsFirst();
  return std::unique_ptr<KernelState>(std::move(state));
}

// X as one tensor.
Tensor Together(const KernelContext& ctx, int64_t rows) {
  int64_t width = 0;
  for (int i = 0; i < ctx.InCount("X"); ++i) width += ctx.In("X", i).dim(-1);
  Tensor whole = ctx.CallScratch(DType::kF32, {rows, width});
  float* to = whole.mutable_data<float>();
  constexpr auto kFloat = static_cast<int64_t>(sizeof(float));
  for (int i = 0; i < ctx.InCount("X"); ++i) {
    const int64_t columns = ctx.In("X", i).dim(-1);
    const int64_t step = RowStep(ctx.In("X", i), ctx.In("X", i).rank() - 1);
    CopyRows(ctx, ctx.In("X", i).raw(), step * kFloat, to, width * kFloat, rows, columns * kFloat);
    to += columns;
  }
  return whole;
}

// False: the runner cannot read pieces, or there are too many.
bool RunPieces(const KernelContext& ctx, const GemmRunner& runner, const float* bias,
               const float* residual, float* out) {
  constexpr int kMost = 64;
  std::array<GemmPiece, kMost> pieces;
  const int count = ctx.InCount("X");
  if (count > kMost) return false;
  for (int i = 0; i < count; ++i) {
    const Tensor& x = ctx.In("X", i);
    pieces[static_cast<size_t>(i)] = {x.data<float>(), RowStep(x, x.rank() - 1), x.dim(-1)};
  }
  return runner.RunPieces(ctx, std::span(pieces).first(static_cast<size_t>(count)), bias, residual,
                          out);
}

Status RunFusedMatmul(KernelContext& ctx) {
  const auto& state = ctx.State<FusedMatmulState>();
  const Tensor* const bias_in = ctx.InOpt("Bias");
  const Tensor* const residual_in = ctx.InOpt("ResidualData");
  float* const to = ctx.Out("Out").mutable_data<float>();
  // The common case has a branch of its own, which small products feel.
  if (!state.late && !state.gathers && ctx.InCount("X") == 1) {
    state.runner->Run(ctx, ctx.In("X").data<float>(), ctx.In("Y").data<float>(),
                      bias_in ? bias_in->data<float>() : nullptr,
                      residual_in ? residual_in->data<float>() : nullptr, to);
    return Status::Ok();
  }
  Tensor product = state.late ? ctx.CallScratch(DType::kF32, state.product) : Tensor();
  float* const out = state.late ? product.mutable_data<float>() : to;
  const float* const bias = bias_in ? bias_in->data<float>() : nullptr;
  const float* const residual = residual_in && !state.late ? residual_in->data<float>() : nullptr;
  if (!state.pieces || !RunPieces(ctx, *state.runner, bias, residual, out)) {
    const bool copied = ctx.InCount("X") > 1 || state.gathers;
    const Tensor whole = copied ? Together(ctx, state.rows) : Tensor();
    state.runner->Run(ctx, (copied ? whole : ctx.In("X")).data<float>(), ctx.In("Y").data<float>(),
                      bias, residual, out);
  }
  if (state.late)
    SpreadResidual(*state.late, state.product, out, residual_in->shape(),
                   residual_in->data<float>(), to);
  return Status::Ok();
}

double FusedMatmulCost(const ShapeContext& ctx) {
  const Result<Shape> x = WholeX(ctx);
  if (!x.ok()) return 0;
  const Result<MatmulShapes> s = View(ctx, *x, ctx.InShape("Y"));
  if (!s.ok() || !s->out.is_static()) return 0;
  return 80 + static_cast<double>(s->out.numel()) * static_cast<double>(s->k) / 40;
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(fused_matmul) {
  op.Doc(
      "activation(alpha op(X) op(Y) + Bias along the last dimension + ResidualData), where the "
      "product "
      "or ResidualData may have a batch of 1. Several X stand for what they are side by side along "
      "their "
      "last dimension. The activation's constants and fuse_bf16 (for a constant Y) are those of "
      "fused_conv2d. fuse_int8: a "
      "constant Y is rounded to integers of 8 bits times a factor for each 128 of a column. "
      "fuse_float_out: X and Y have 16 bits, all others are float32");
  op.Input("X", kList | kByRows)
      .Input("Y")
      .Input("Bias", kOptional)
      .Input("ResidualData", kOptional);
  op.Output("Out");
  op.Attr("trans_x", false).Attr("trans_y", false).Attr("alpha", 1.0);
  op.Attr("fuse_activation", "").Attr("fuse_alpha", 0.0).Attr("fuse_beta", 0.0);
  op.Attr("fuse_bf16", false).Attr("fuse_int8", false).Attr("fuse_float_out", false);
  op.Inplace("ResidualData", "Out").InferShape(FusedMatmulShape).Prepare(PrepareFusedMatmul);
  op.Cost(FusedMatmulCost).Kernel(DType::kF32, RunFusedMatmul);
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
