#include "core/operands/window.h"
#include "core/shapes.h"
#include "kernels/shape/view_op.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

// The attribute made non-negative and checked to be a permutation of `rank` axes.
Status ReadPerm(const OpContext& ctx, int rank, std::array<int, Shape::kMaxRank>* perm) {
  const Ints& axis = ctx.IntList("axis");
  if (static_cast<int>(axis.size()) != rank)
    return InvalidArgument("'axis' names ", axis.size(), " axes, but the tensor has rank ", rank);
  unsigned seen = 0;
  for (int i = 0; i < rank; ++i) {
    HEDDLE_ASSIGN_OR_RETURN((*perm)[i], NormalAxis(axis[i], rank));
    seen |= 1u << (*perm)[i];
  }
  if (seen != (1u << rank) - 1) return InvalidArgument("'axis' names an axis more than once");
  return Status::Ok();
}

Status TransposeShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank()) return ctx.Defer();
  std::array<int, Shape::kMaxRank> perm;
  HEDDLE_RETURN_IF_ERROR(ReadPerm(ctx, x.rank(), &perm));
  Shape out = x;
  for (int i = 0; i < x.rank(); ++i) out[i] = x[perm[i]];
  ctx.SetOut("Out", out, ctx.InDType("X"));
  SetXShape(ctx);
  return Status::Ok();
}

Status TransposeGradShape(ShapeContext& ctx) {
  const Shape& g = ctx.InShape("Out@GRAD");
  if (!g.known_rank()) return ctx.Defer();
  std::array<int, Shape::kMaxRank> perm;
  HEDDLE_RETURN_IF_ERROR(ReadPerm(ctx, g.rank(), &perm));
  Shape x = g;
  for (int i = 0; i < g.rank(); ++i) x[perm[i]] = g[i];
  ctx.SetOut("X@GRAD", x, ctx.InDType("Out@GRAD"));
  return Status::Ok();
}

StridedCopy TransposeForward(const OpContext& ctx, const Tensor& x) {
  std::array<int, Shape::kMaxRank> perm;
  (void)ReadPerm(ctx, x.rank(), &perm);  // checked with the shapes
  return PermuteCopy(SizeOf(x.dtype()), x.shape(), std::span(perm.data(), size_t(x.rank())));
}

StridedCopy TransposeBack(const OpContext& ctx, const Tensor& grad) {
  std::array<int, Shape::kMaxRank> perm, inverse;
  (void)ReadPerm(ctx, grad.rank(), &perm);
  for (int i = 0; i < grad.rank(); ++i) inverse[perm[i]] = i;
  return PermuteCopy(SizeOf(grad.dtype()), grad.shape(),
                     std::span(inverse.data(), size_t(grad.rank())));
}

struct TransposeState final : CopyState, WindowState {
  using CopyState::CopyState;
  std::array<int, Shape::kMaxRank> perm{};
  bool WindowOf(int, Window* window) const override {
    window->axis = perm;
    window->step.fill(1);
    return true;
  }
};

Result<std::unique_ptr<KernelState>> PrepareTranspose(PrepareContext& ctx) {
  const Tensor& x = ctx.InVar("X")->tensor();
  auto state = std::make_unique<TransposeState>(TransposeForward(ctx, x));
  HEDDLE_RETURN_IF_ERROR(ReadPerm(ctx, x.rank(), &state->perm));
  return std::unique_ptr<KernelState>(std::move(state));
}
Result<std::unique_ptr<KernelState>> PrepareGrad(PrepareContext& ctx) {
  return std::unique_ptr<KernelState>(
      new CopyState(TransposeBack(ctx, ctx.InVar("Out@GRAD")->tensor())));
}

Status Transpose(KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  Tensor& out = ctx.Out("Out");
  if (ctx.has_state())
    ctx.State<CopyState>().copy.Run(ctx, x.raw(), out.mutable_raw());
  else
    TransposeForward(ctx, x).Run(ctx, x.raw(), out.mutable_raw());
  return Status::Ok();
}

Status TransposeGrad(KernelContext& ctx) {
  const Tensor& grad = ctx.In("Out@GRAD");
  Tensor& out = ctx.Out("X@GRAD");
  if (ctx.has_state())
    ctx.State<CopyState>().copy.Run(ctx, grad.raw(), out.mutable_raw());
  else
    TransposeBack(ctx, grad).Run(ctx, grad.raw(), out.mutable_raw());
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(transpose2) {
  op.Doc("X with its axes in the order `axis`.")
      .Input("X")
      .Output("Out")
      .Output("XShape", kOptional | kNoData)
      .Attr("axis", Ints{})
      .Traits(kWindows)
      .InferShape(TransposeShape)
      .Prepare(PrepareTranspose)
      .AnyKernel(Transpose);
}
HEDDLE_OP(transpose2_grad) {
  op.Input("Out@GRAD")
      .Input("XShape", kNoBuffer | kOptional)
      .Output("X@GRAD")
      .Attr("axis", Ints{})
      .InferShape(TransposeGradShape)
      .Prepare(PrepareGrad)
      .AnyKernel(TransposeGrad);
}
HEDDLE_OP(transpose) {
  op.Doc("transpose2 without XShape.")
      .Input("X")
      .Output("Out")
      .Output("XShape", kOptional | kNoData)
      .Attr("axis", Ints{})
      .Traits(kWindows)
      .InferShape(TransposeShape)
      .Prepare(PrepareTranspose)
      .AnyKernel(Transpose);
}
HEDDLE_OP(transpose_grad) {
  op.Input("Out@GRAD")
      .Input("X", kNoBuffer | kOptional)
      .Input("Out", kOptional | kNoBuffer)
      .Output("X@GRAD")
      .Attr("axis", Ints{})
      .InferShape(TransposeGradShape)
      .Prepare(PrepareGrad)
      .AnyKernel(TransposeGrad);
}

HEDDLE_EXAMPLES(transpose2, R"(
example bfloat16 3x2, axis 1 0
attr axis INTS [1, 0]
in X bfloat16 [3, 2] 0.2 0.5 0.3 0.1 0.5 0.7
out Out bfloat16 [2, 3] 0.2 0.3 0.5 0.5 0.1 0.7
out XShape ?

example float32 5x3x1, axis 0 2 1
attr axis INTS [0, 2, 1]
in X float32 [5, 3, 1] -0.62 0.45 -0.38 -0.5 -0.86 -0.14 0.33 0.21 -0.26 0.09 -0.03 0.57 0.69 0.8
  -0.74
out Out float32 [5, 1, 3] -0.62 0.45 -0.38 -0.5 -0.86 -0.14 0.33 0.21 -0.26 0.09 -0.03 0.57 0.69 0.8
  -0.74
out XShape ?

example float64 4, axis 0
attr axis INTS [0]
in X float64 [4] 0.6 0.204 0.798 0.402
out Out float64 [4] 0.6 0.204 0.798 0.402
out XShape ?

example float64 scalar, axis
attr axis INTS []
in X float64 [] 0.227
out Out float64 [] 0.227
out XShape ?
)")

HEDDLE_EXAMPLES(transpose, R"(
example 2 0 1
attr axis INTS [2, 0, 1]
in X float32 [2, 3, 2] -0.89 0.44 -0.63 0.02 0.25 0.79 -0.4 -0.49 0.26 0.99 0.78 -0.86
out Out float32 [2, 2, 3] -0.89 -0.63 0.25 -0.4 0.26 0.78 0.44 0.02 0.79 -0.49 0.99 -0.86

example int64
attr axis INTS [1, 0]
in X int64 [2, 3] 4 2 4 6 0 5
out Out int64 [3, 2] 4 6 2 0 4 5

example bool
attr axis INTS [1, 0]
in X bool [2, 3] 1 0 0 1 1 0
out Out bool [3, 2] 1 1 0 1 0 0
)")

HEDDLE_EXAMPLES(transpose_grad, R"(
example 2 0 1
attr axis INTS [2, 0, 1]
in Out float64 [2, 2, 3] 0.87 -0.34 -0.13 -0.02 0.42 -0.1 -0.92 0.75 0.43 -0.38 0.21 -0.19
in Out@GRAD float64 [2, 2, 3] 0.1 -0.5 0.2 -0.8 0.9 0 0.8 -0.8 -0.8 -1 0.6 -1
in X float64 [2, 3, 2] 0.87 -0.92 -0.34 0.75 -0.13 0.43 -0.02 -0.38 0.42 0.21 -0.1 -0.19
out X@GRAD float64 [2, 3, 2] 0.1 0.8 -0.5 -0.8 0.2 -0.8 -0.8 -1 0.9 0.6 0 -1
)")

HEDDLE_EXAMPLES(transpose2_grad, R"(
example float32
attr axis INTS [2, 0, 1]
in XShape float32 [0, 2, 3, 1] none
in Out@GRAD float32 [1, 2, 3] -0.27 -0.3 -0.73 0.69 -0.14 0.56
out X@GRAD float32 [2, 3, 1] -0.27 -0.3 -0.73 0.69 -0.14 0.56

example float64
attr axis INTS [2, 0, 1]
in XShape float64 [0, 2, 3, 1] none
in Out@GRAD float64 [1, 2, 3] -0.17 0.79 0.16 -0.49 0.32 -0.43
out X@GRAD float64 [2, 3, 1] -0.17 0.79 0.16 -0.49 0.32 -0.43
)")
