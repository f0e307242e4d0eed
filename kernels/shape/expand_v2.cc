// expand_v2, expand_as_v2 and expand_as: X broadcast to a given shape.
#include "core/shapes.h"
#include "kernels/index/index_args.h"
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
  HEDDLE_ASSIGN_OR_RETURN(const Shape out, Target(x, want));
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
  op.Doc("X broadcast to `shape`; -1 keeps X's dimension.")
      .Input("X")
      .Input("Shape", kOptional | kShapeValue)
      .Input("expand_shapes_tensor", kOptional | kList | kShapeValue)
      .Output("Out")
      .Attr("shape", Ints{})
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

HEDDLE_EXAMPLES(expand_v2, R"(
example float64 4, shape -1
attr shape INTS [-1]
in X float64 [4] 0.2 0.594 0.397 0.791
in expand_shapes_tensor int32 [1] 4
out Out float64 [4] 0.2 0.594 0.397 0.791

example float32 3x3, shape 3 3
attr shape INTS [3, 3]
in X float32 [3, 3] 0.586 0.532 0.802 0.694 0.748 0.64 0.478 0.91 0.856
out Out float32 [3, 3] 0.586 0.532 0.802 0.694 0.748 0.64 0.478 0.91 0.856

example float64 4
in Shape int32 [2] 2 4
in X float64 [4] 0.397 0.594 0.791 0.2
out Out float64 [2, 4] 0.397 0.594 0.791 0.2 0.397 0.594 0.791 0.2

example int64 2x2, shape 2 2
attr shape INTS [2, 2]
in X int64 [2, 2] 0 0 1 0
out Out int64 [2, 2] 0 0 1 0

example bool 3x3, shape 3 3
attr shape INTS [3, 3]
in X bool [3, 3] 0 0 0 1 1 0 1 0 1
out Out bool [3, 3] 0 0 0 1 1 0 1 0 1

example complex64 3x3, shape 3 3
attr shape INTS [3, 3]
in X complex64 [3, 3] 0.586+0.8j 0.532+0.3j 0.802+0.5j 0.694-0.7j 0.748-0.8j 0.64+0.6j 0.478-0.3j
  0.91+0.1j 0.856-0.5j
out Out complex64 [3, 3] 0.586+0.8j 0.532+0.3j 0.802+0.5j 0.694-0.7j 0.748-0.8j 0.64+0.6j 0.478-0.3j
  0.91+0.1j 0.856-0.5j

example bfloat16 3x3, shape 3 3
attr shape INTS [3, 3]
in X bfloat16 [3, 3] 0.586 0.53 0.8 0.695 0.746 0.64 0.479 0.91 0.855
out Out bfloat16 [3, 3] 0.586 0.53 0.8 0.695 0.746 0.64 0.479 0.91 0.855

example float16 3x3, shape 3 3
attr shape INTS [3, 3]
in X float16 [3, 3] 0.586 0.532 0.802 0.694 0.748 0.64 0.478 0.91 0.856
out Out float16 [3, 3] 0.586 0.532 0.802 0.694 0.748 0.64 0.478 0.91 0.856
)")

HEDDLE_EXAMPLES(expand_v2_grad, R"(
example float64 4
in Out@GRAD float64 [4] 0.2 0.4 -0.4 0.5
in X float64 [4] 0.604 0.8 0.408 0.212
in expand_shapes_tensor int32 [1] 4
out X@GRAD float64 [4] 0.2 0.4 -0.4 0.5

example float64 2x3
in Out@GRAD float64 [2, 3] -0.6 0.6 0.7 -0.3 -0.5 0.6
in X float64 [2, 3] 0.256 -0.307 0.115 -0.166 -0.026 0.397
out X@GRAD float64 [2, 3] -0.6 0.6 0.7 -0.3 -0.5 0.6
)")

HEDDLE_EXAMPLES(expand_as_v2, R"(
example float32 5, target_shape 5
attr target_shape INTS [5]
in X float32 [5] -0.02 0.28 0.59 -0.33 -0.63
in Y float32 [5] -0.54 -0.23 0.38 0.07 0.68
out Out float32 [5] -0.02 0.28 0.59 -0.33 -0.63

example float64 2x4, target_shape 2 4
attr target_shape INTS [2, 4]
in X float64 [4] 0.604 0.212 0.8 0.408
in Y float64 [2, 4] 0.113 0.775 0.886 0.444 0.665 0.223 0.334 0.555
out Out float64 [2, 4] 0.604 0.212 0.8 0.408 0.604 0.212 0.8 0.408

example float64 scalar, target_shape 1
attr target_shape INTS [1]
in X float64 [] 0.696
in Y float64 [1] 0.286
out Out float64 [1] 0.696

example float32 3x2, target_shape 3 2
attr target_shape INTS [3, 2]
in X float32 [2] -0.185 0.183
in Y float32 [3, 2] 0.62 0.12 -0.13 -0.62 -0.37 0.37
out Out float32 [3, 2] -0.185 0.183 -0.185 0.183 -0.185 0.183

example int32 5, target_shape 5
attr target_shape INTS [5]
in X int32 [5] 0*5
in Y int32 [5] 0*5
out Out int32 [5] 0*5

example int64 5, target_shape 5
attr target_shape INTS [5]
in X int64 [5] 0*5
in Y int64 [5] 0*5
out Out int64 [5] 0*5

example bool 5, target_shape 5
attr target_shape INTS [5]
in X bool [5] 0 0 0 1 1
in Y bool [5] 0 1 0 1 0
out Out bool [5] 0 0 0 1 1
)")

HEDDLE_EXAMPLES(expand_as_v2_grad, R"(
example float64 5
in Out@GRAD float64 [5] -0.8 0.4 0.1 -0.3 -0.2
in X float64 [5] -0.33 -0.63 -0.02 0.28 0.59
out X@GRAD float64 [5] -0.8 0.4 0.1 -0.3 -0.2

example float64 scalar
in Out@GRAD float64 [] -0.2
in X float64 [] 0.696
out X@GRAD float64 [] -0.2

example float64 2x3x4
in Out@GRAD float64 [2, 3, 4] -0.8 0.3 -0.2 0.2 0.4 0.4 0.9 0.3 0 -0.8 -0.2 -0.4 -0.7 -1 -0.2 -0 -1
  0.1 -0.8 -0.2 -0.4 0.5 0.2 -0.2
in X float64 [2, 3, 4] 0.439 0.4 0.678 0.837 0.281 0.042 0.598 0.479 0.519 0.638 0.122 0.162 0.201
  0.797 0.36 0.956 0.757 0.559 0.241 0.32 0.876 0.916 0.082 0.717
out X@GRAD float64 [2, 3, 4] -0.8 0.3 -0.2 0.2 0.4 0.4 0.9 0.3 0 -0.8 -0.2 -0.4 -0.7 -1 -0.2 -0 -1
  0.1 -0.8 -0.2 -0.4 0.5 0.2 -0.2

example float32 5
in Out@GRAD float32 [5] -0.8 0.4 0.1 -0.3 -0.2
in X float32 [5] -0.33 -0.63 -0.02 0.28 0.59
out X@GRAD float32 [5] -0.8 0.4 0.1 -0.3 -0.2
)")

HEDDLE_EXAMPLES(expand_as, R"(
example float32
in X float32 [2, 3] 4 3 -0 -1 -9 5
in target_tensor float32 [4, 3] 0.2 0.92 0.33 0.21 -0.1 -0.55 0.34 0.47 -0.48 -0.81 0.92 -0.5
from tile X=X -> Out=Out
attr repeat_times INTS [2, 1]
out Out float32 [4, 3] 4 3 -0 -1 -9 5 4 3 -0 -1 -9 5

example int64
in X int64 [2, 3] -4 5 5 1 -2 -2
in target_tensor float32 [4, 3] -0.43 0.48 -0.52 -0.12 0.77 -0.42 0.57 0.52 -0.16 -0.55 -0.16 -0.87
from tile X=X -> Out=Out
attr repeat_times INTS [2, 1]
out Out int64 [4, 3] -4 5 5 1 -2 -2 -4 5 5 1 -2 -2
)")

HEDDLE_EXAMPLES(expand_as_grad, R"(
example float32
in X float32 [2, 3] 0.19 0.67 0.78 -0.6 0 0.79
in target_tensor float32 [4, 3] -0.49 0.73 -0.97 0.1 0.06 0.85 -0.51 -0.87 0.8 0.75 -0.67 1
in Out@GRAD float32 [4, 3] -0.31 -0.37 0.69 0.76 0.35 -0.89 0.12 0.39 0.65 -0.38 0.01 0.7
from tile_grad X=X Out@GRAD=Out@GRAD -> X@GRAD=X@GRAD
attr repeat_times INTS [2, 1]
out X@GRAD float32 [2, 3] -0.19 0.01999998 1.3399999 0.38 0.35999998 -0.19

example float64, both dimensions
in X float64 [1, 2] -0.41 0.35
in target_tensor float32 [2, 4] -0.16 0.36 -0.56 0.1 0.7 0.47 -0 -0.24
in Out@GRAD float64 [2, 4] 0.58 -0.66 0.17 -0.14 -0.88 -0.42 0.47 -0.42
from tile_grad X=X Out@GRAD=Out@GRAD -> X@GRAD=X@GRAD
attr repeat_times INTS [2, 2]
out X@GRAD float64 [1, 2] 0.33999999999999997 -1.6400000000000001
)")
