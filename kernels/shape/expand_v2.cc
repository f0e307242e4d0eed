// expand_v2, expand_as_v2 and expand_as: X broadcast to a given shape.
#include <algorithm>

#include "core/shapes.h"
#include "kernels/base/index_args.h"
#include "kernels/strided/index_expand.h"

namespace heddle {
namespace {

// -1 keeps X's dimension; one that X lacks must be given.
Result<Shape> Target(const Shape& x, const IntArgs& want) {
  if (want.n > Shape::kMaxRank || want.n < x.rank())
    return InvalidArgument("X of shape ", x.ToString(), " cannot be expanded to ", want.n,
                           " dimensions (at most ", Shape::kMaxRank, ")");
  const int lead = want.n - x.rank();
  Shape out;
  for (int i = 0; i < want.n; ++i) {
    const int64_t have = i < lead ? 1 : x[i - lead];
    int64_t d = want[i];
    if (d == -1 && (i >= lead || !want.known)) d = want.known ? have : -1;
    const bool fits = d == have || have == 1 || have < 0 || d < 0;
    if (d < -1 || (d == -1 && i < lead && want.known) || !fits)
      return InvalidArgument("X of shape ", x.ToString(), " cannot be expanded to ",
                             Shape(want.span()).ToString());
    out.push_back(d);
  }
  return out;
}

// X and the target broadcast with each other.
Result<Shape> Common(const Shape& x, const IntArgs& want) {
  if (!want.known || !x.is_static()) {
    Shape open;
    for (int i = 0; i < std::max(x.rank(), want.n); ++i) open.push_back(-1);
    return open;
  }
  for (const int64_t d : want.span())
    if (d < 0) return InvalidArgument("the shape holds ", d, ", expected sizes");
  return BroadcastShape(x, Shape(want.span()), -1);
}

Status SetExpanded(ShapeContext& ctx, const Shape& out) {
  const Shape& x = ctx.InShape("X");
  ctx.SetOut("Out", out, ctx.InDType("X"));
  if (x.rank() > 0 && out.rank() > 0 && x[0] == out[0]) ctx.ShareLoD("X", "Out");
  return Status::Ok();
}

Status ExpandV2Shape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  IntArgs want;
  HEDDLE_RETURN_IF_ERROR(ReadInts(ctx, "expand_shapes_tensor", "Shape", "shape", &want));
  if (!x.known_rank() || want.n < 0) return ctx.Defer();
  if (want.n > Shape::kMaxRank)
    return InvalidArgument("X of shape ", x.ToString(), " cannot be expanded to ", want.n,
                           " dimensions (at most ", Shape::kMaxRank, ")");
  HEDDLE_ASSIGN_OR_RETURN(const Shape out, ctx.Bool("mutual") ? Common(x, want) : Target(x, want));
  return SetExpanded(ctx, out);
}

Status ToShape(ShapeContext& ctx, const Shape& target) {
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank() || !target.known_rank()) return ctx.Defer();
  IntArgs want;
  want.n = target.rank();
  for (int i = 0; i < target.rank(); ++i) {
    want[i] = target[i];
    want.known = want.known && target[i] >= 0;
  }
  HEDDLE_ASSIGN_OR_RETURN(const Shape out, Target(x, want));
  return SetExpanded(ctx, out);
}

Status ExpandAsShape(ShapeContext& ctx) {
  if (ctx.HasIn("Y")) return ToShape(ctx, ctx.InShape("Y"));
  const Ints& target = ctx.IntList("target_shape");
  if (target.size() > static_cast<size_t>(Shape::kMaxRank))
    return InvalidArgument("'target_shape' has ", target.size(), " dimensions");
  return ToShape(ctx, Shape(std::span(target.data(), target.size())));
}

// The old expand_as repeats, as tile does.
Status ExpandAsV1Shape(ShapeContext& ctx) {
  const Shape& target = ctx.InShape("target_tensor");
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank() || !target.known_rank()) return ctx.Defer();
  Repeats repeats;
  if (x.is_static() && target.is_static()) HEDDLE_RETURN_IF_ERROR(MakeRepeats(x, target, &repeats));
  return SetExpanded(ctx, target);
}

Result<std::unique_ptr<KernelState>> PrepareExpand(PrepareContext& ctx) {
  return PrepareRepeat(ctx.InVar("X")->tensor(), ctx.OutShape("Out"));
}

Status Expand(KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  Tensor& out = ctx.Out("Out");
  if (out.numel() == 0) return Status::Ok();
  if (!ctx.has_state()) return RunRepeat(ctx, x, out);
  ctx.State<CopyState>().copy.Run(ctx, x.raw(), out.mutable_raw());
  return Status::Ok();
}

Status ExpandGrad(KernelContext& ctx) {
  return RunRepeatSum(ctx, ctx.In("Out@GRAD"), ctx.Out("X@GRAD"));
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(expand_v2) {
  op.Doc("X broadcast to `shape`, or with `mutual` together with it; -1 keeps X's dimension.")
      .Input("X")
      .Input("Shape", kOptional | kShapeValue)
      .Input("expand_shapes_tensor", kOptional | kList | kShapeValue)
      .Output("Out")
      .Attr("shape", Ints{})
      .Attr("mutual", false)
      .InferShape(ExpandV2Shape)
      .Prepare(PrepareExpand)
      .AnyKernel(Expand);
}
HEDDLE_OP(expand_v2_grad) {
  op.Input("Out@GRAD")
      .Input("X", kNoBuffer)
      .Input("Shape", kOptional | kNoBuffer)
      .Input("expand_shapes_tensor", kOptional | kList | kNoBuffer)
      .Output("X@GRAD")
      .InferShape(GradLikeInputs)
      .AnyKernel(ExpandGrad);
}
HEDDLE_OP(expand_as_v2) {
  op.Doc("X broadcast to Y's shape.")
      .Input("X")
      .Input("Y", kOptional | kNoBuffer)
      .Output("Out")
      .Attr("target_shape", Ints{})
      .InferShape(ExpandAsShape)
      .Prepare(PrepareExpand)
      .AnyKernel(Expand);
}
HEDDLE_OP(expand_as_v2_grad) {
  op.Input("Out@GRAD")
      .Input("X", kNoBuffer)
      .Output("X@GRAD")
      .InferShape(GradLikeInputs)
      .AnyKernel(ExpandGrad);
}
HEDDLE_OP(expand_as) {
  op.Doc("X repeated to the shape of target_tensor.")
      .Input("X")
      .Input("target_tensor", kNoBuffer)
      .Output("Out")
      .InferShape(ExpandAsV1Shape)
      .Prepare(PrepareExpand)
      .AnyKernel(Expand);
}
HEDDLE_OP(expand_as_grad) {
  op.Input("Out@GRAD")
      .Input("X", kNoBuffer)
      .Input("target_tensor", kOptional | kNoBuffer)
      .Output("X@GRAD")
      .InferShape(GradLikeInputs)
      .AnyKernel(ExpandGrad);
}
