#include "core/operands/window.h"
#include "core/shapes.h"
#include "kernels/base/index_args.h"
#include "kernels/shape/view_op.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

// The order of the axes is an operand.
bool HasPerm(const OpContext& ctx) {
  return ctx.def().FindInput("Perm") >= 0 && Holds(ctx.InVar("Perm"));
}

// The order, made non-negative and checked to be a permutation of `rank` axes. `known`: whether it
// is, yet.
Status ReadPerm(const OpContext& ctx, int rank, std::array<int, Shape::kMaxRank>* perm,
                bool* known = nullptr) {
  IntArgs axis;
  if (ctx.def().FindInput("Perm") >= 0) {
    HEDDLE_RETURN_IF_ERROR(ReadInts(ctx, "Perm", "axis", &axis));
    if (known != nullptr) *known = axis.known;
    if (!axis.known) return Status::Ok();
    for (int i = 0; ctx.Bool("reversed") && i < rank; ++i) axis[i] = rank - 1 - i, axis.n = rank;
  } else {
    const Ints& given = ctx.IntList("axis");
    axis.n = static_cast<int>(std::min(given.size(), size_t{IntArgs::kMax}));
    for (int i = 0; i < axis.n; ++i) axis[i] = given[static_cast<size_t>(i)];
  }
  if (axis.n != rank)
    return InvalidArgument("'axis' names ", axis.n, " axes, but the tensor has rank ", rank);
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
  bool known = true;
  HEDDLE_RETURN_IF_ERROR(ReadPerm(ctx, x.rank(), &perm, &known));
  Shape out = x;
  for (int i = 0; i < x.rank(); ++i) out[i] = known ? x[perm[i]] : -1;
  ctx.SetOut("Out", out, ctx.InDType("X"));
  SetXShape(ctx);
  return Status::Ok();
}

Status TransposeGradShape(ShapeContext& ctx) {
  const Shape& g = ctx.InShape("Out@GRAD");
  if (!g.known_rank()) return ctx.Defer();
  std::array<int, Shape::kMaxRank> perm;
  bool known = true;
  HEDDLE_RETURN_IF_ERROR(ReadPerm(ctx, g.rank(), &perm, &known));
  if (!known) return ctx.Defer();
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
  if (HasPerm(ctx)) return std::unique_ptr<KernelState>();
  const Tensor& x = ctx.InVar("X")->tensor();
  auto state = std::make_unique<TransposeState>(TransposeForward(ctx, x));
  HEDDLE_RETURN_IF_ERROR(ReadPerm(ctx, x.rank(), &state->perm));
  return std::unique_ptr<KernelState>(std::move(state));
}
Result<std::unique_ptr<KernelState>> PrepareGrad(PrepareContext& ctx) {
  if (HasPerm(ctx)) return std::unique_ptr<KernelState>();
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
  op.Doc("X with its axes in the order `axis`, or of Perm, or reversed.")
      .Input("X")
      .Input("Perm", kOptional | kShapeValue)
      .Output("Out")
      .Output("XShape", kOptional | kNoData)
      .Attr("axis", Ints{})
      .Attr("reversed", false)
      .Traits(kWindows)
      .InferShape(TransposeShape)
      .Prepare(PrepareTranspose)
      .AnyKernel(Transpose);
}
HEDDLE_OP(transpose2_grad) {
  op.Input("Out@GRAD")
      .Input("XShape", kNoBuffer | kOptional)
      .Input("Perm", kOptional | kShapeValue)
      .Output("X@GRAD")
      .Attr("axis", Ints{})
      .Attr("reversed", false)
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
