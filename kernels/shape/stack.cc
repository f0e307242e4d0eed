// stack and its opposites, unstack and unbind: one new axis whose items are whole tensors.
#include "core/operands/window.h"
#include "core/shapes.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

// Items of slot `in` along a new axis of slot `out`.
Status JoinShape(ShapeContext& ctx, Key in, Key out) {
  const int count = ctx.InCount(in);
  if (count == 0) return InvalidArgument("'", in.name, "' names no tensor");
  Shape x = ctx.InShape(in);
  for (int i = 0; i < count; ++i)
    if (!ctx.InShape(in, i).known_rank()) return ctx.Defer();
  if (x.rank() == Shape::kMaxRank)
    return InvalidArgument("'", in.name, "' has too many dimensions to add one");
  for (int i = 1; i < count; ++i) {
    const Shape& other = ctx.InShape(in, i);
    bool same = other.rank() == x.rank();
    for (int d = 0; same && d < x.rank(); ++d) {
      same = other[d] == x[d] || other[d] < 0 || x[d] < 0;
      if (x[d] < 0) x[d] = other[d];
    }
    if (!same)
      return InvalidArgument("'", in.name, "' [", i, "] has shape ", other.ToString(),
                             ", but the first one has ", ctx.InShape(in).ToString());
  }
  HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(ctx.Int("axis"), x.rank() + 1));
  x.insert(axis, count);
  ctx.SetOut(out, x, ctx.InDType(in));
  return Status::Ok();
}

// The items of slot `in` along the axis, as tensors of slot `out`.
Status PartShape(ShapeContext& ctx, Key in, Key out) {
  Shape x = ctx.InShape(in);
  if (!x.known_rank()) return ctx.Defer();
  if (x.rank() == 0) return InvalidArgument("'", in.name, "' must have at least one dimension");
  HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(ctx.Int("axis"), x.rank()));
  const int count = ctx.OutCount(out);
  if (x[axis] >= 0 && x[axis] != count)
    return InvalidArgument("dimension ", axis, " of '", in.name, "' ", x.ToString(),
                           " does not fit the ", count, " tensors of '", out.name, "'");
  x.erase(axis);
  for (int i = 0; i < count; ++i) ctx.SetOut(out, x, ctx.InDType(in), i);
  return Status::Ok();
}

Status StackShape(ShapeContext& ctx) { return JoinShape(ctx, "X", "Y"); }
Status StackGradShape(ShapeContext& ctx) { return PartShape(ctx, "Y@GRAD", "X@GRAD"); }
Status UnstackShape(ShapeContext& ctx) { return PartShape(ctx, "X", "Y"); }
Status UnstackGradShape(ShapeContext& ctx) { return JoinShape(ctx, "Y@GRAD", "X@GRAD"); }
Status UnbindShape(ShapeContext& ctx) { return PartShape(ctx, "X", "Out"); }

struct ItemState final : KernelState, WindowState {
  ItemState(int a, int r) : axis(a), rank(r) {}
  int axis, rank;
  bool WindowOf(int i, Window* window) const override {
    window->start[axis] = i;
    for (int d = 0, to = 0; d < rank; ++d)
      if (d != axis) window->axis[to] = d, window->step[to++] = 1;
    return true;
  }
};

// The kernels do without the state: it is for the plan alone.
Result<std::unique_ptr<KernelState>> PrepareItems(PrepareContext& ctx) {
  const int rank = ctx.InShape("X").rank();
  HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(ctx.Int("axis"), rank));
  return std::unique_ptr<KernelState>(std::make_unique<ItemState>(axis, rank));
}

struct Layout {
  int64_t rows, bytes;  // per item
};

Layout LayoutOf(const KernelContext& ctx, const Tensor& joined) {
  const int64_t a = ctx.Int("axis");
  const int axis = static_cast<int>(a < 0 ? a + joined.rank() : a);
  return {joined.shape().Product(0, axis), joined.shape().Product(axis + 1, joined.rank()) *
                                               static_cast<int64_t>(SizeOf(joined.dtype()))};
}

Status JoinKernel(KernelContext& ctx, Key in, Key out_key) {
  Tensor& out = ctx.Out(out_key);
  const Layout l = LayoutOf(ctx, out);
  const int count = ctx.InCount(in);
  auto* dst = static_cast<std::byte*>(out.mutable_raw());
  for (int i = 0; i < count; ++i) {
    const Tensor& x = ctx.In(in, i);
    if (x.dtype() != out.dtype())
      return InvalidArgument("'", in.name, "' [", i, "] is ", Name(x.dtype()),
                             ", but the first one is ", Name(out.dtype()));
    CopyRows(ctx, x.raw(), l.bytes, dst + i * l.bytes, l.bytes * count, l.rows, l.bytes);
  }
  return Status::Ok();
}

Status PartKernel(KernelContext& ctx, Key in, Key out) {
  const Tensor& x = ctx.In(in);
  const Layout l = LayoutOf(ctx, x);
  const int count = ctx.OutCount(out);
  const auto* src = static_cast<const std::byte*>(x.raw());
  for (int i = 0; i < count; ++i) {
    if (!ctx.HasOut(out, i)) continue;
    CopyRows(ctx, src + i * l.bytes, l.bytes * count, ctx.Out(out, i).mutable_raw(), l.bytes,
             l.rows, l.bytes);
  }
  return Status::Ok();
}

Status Stack(KernelContext& ctx) { return JoinKernel(ctx, "X", "Y"); }
Status StackGrad(KernelContext& ctx) { return PartKernel(ctx, "Y@GRAD", "X@GRAD"); }
Status Unstack(KernelContext& ctx) { return PartKernel(ctx, "X", "Y"); }
Status UnstackGrad(KernelContext& ctx) { return JoinKernel(ctx, "Y@GRAD", "X@GRAD"); }
Status Unbind(KernelContext& ctx) { return PartKernel(ctx, "X", "Out"); }

}  // namespace
}  // namespace heddle

HEDDLE_OP(stack) {
  op.Doc("The tensors of X as items of a new axis.")
      .Input("X", kList)
      .Output("Y")
      .Attr("axis", 0)
      .InferShape(StackShape)
      .AnyKernel(Stack);
}
HEDDLE_OP(stack_grad) {
  op.Input("Y@GRAD")
      .Input("X", kList | kNoBuffer | kOptional)
      .Output("X@GRAD", kList)
      .Attr("axis", 0)
      .InferShape(StackGradShape)
      .AnyKernel(StackGrad);
}
HEDDLE_OP(unstack) {
  op.Doc("The items of X along `axis` as tensors.")
      .Input("X")
      .Output("Y", kList)
      .Attr("axis", 0)
      .Attr("num", 0)
      .Traits(kWindows)
      .Prepare(PrepareItems)
      .InferShape(UnstackShape)
      .AnyKernel(Unstack);
}
HEDDLE_OP(unstack_grad) {
  op.Input("Y@GRAD", kList)
      .Output("X@GRAD")
      .Attr("axis", 0)
      .Attr("num", 0)
      .InferShape(UnstackGradShape)
      .AnyKernel(UnstackGrad);
}
HEDDLE_OP(unbind) {
  op.Doc("The items of X along `axis` as tensors.")
      .Input("X")
      .Output("Out", kList)
      .Attr("axis", 0)
      .Traits(kWindows)
      .Prepare(PrepareItems)
      .InferShape(UnbindShape)
      .AnyKernel(Unbind);
}

HEDDLE_EXAMPLES(stack, R"(
example int64 4x3, axis 2
attr axis INT 2
in X int64 [4, 3] -1 3 3 -4 -1 2 0 -3 1 -4 -3 1
out Y int64 [4, 3, 1] -1 3 3 -4 -1 2 0 -3 1 -4 -3 1

example int64 3
in X int64 [3] 1 1 1
in X int64 [3] 0 0 0
out Y int64 [2, 3] 1 1 1 0 0 0

example float64 1x2
in X float64 [1, 2] 0.569 0.69
in X float64 [1, 2] 0.643 0.502
in X float64 [1, 2] 0.923 0.623
out Y float64 [3, 1, 2] 0.569 0.69 0.643 0.502 0.923 0.623

example float32 scalar, axis -1
attr axis INT -1
in X float32 [] 1.03
in X float32 [] 1.45
in X float32 [] 1.43
out Y float32 [3] 1.03 1.45 1.43
)")

HEDDLE_EXAMPLES(stack_grad, R"(
example float64 2, axis -1
attr axis INT -1
in X float64 [] 3.03
in X float64 [] 1.4
in Y@GRAD float64 [2] 0.7 0.9
out X@GRAD float64 [] 0.7
out X@GRAD float64 [] 0.9

example float32 2, axis -1
attr axis INT -1
in X float32 [] 3.03
in X float32 [] 1.4
in Y@GRAD float32 [2] 0.7 0.9
out X@GRAD float32 [] 0.7
out X@GRAD float32 [] 0.9
)")

HEDDLE_EXAMPLES(unstack_grad, R"(
example float64 3x2x4, axis -2, num 2
attr axis INT -2
attr num INT 2
in Y@GRAD float64 [3, 2, 4] -0.8 0.3 -0.2 0.2 0.4 0.4 0.9 0.3 0 -0.8 -0.2 -0.4 -0.7 -1 -0.2 -0 -1
  0.1 -0.8 -0.2 -0.4 0.5 0.2 -0.2
in Y@GRAD float64 [3, 2, 4] -0.3 -0.9 -0.8 0.7 -0 -0.5 0.5 0.1 -0.2 0.3 -0.7 0.4 -0.9 0.2 -0.6 -0.5
  -0.2 0.4 0.6 0.8 -0.6 -1 0.5 -0.6
out X@GRAD float64 [3, 2, 2, 4] -0.8 0.3 -0.2 0.2 -0.3 -0.9 -0.8 0.7 0.4 0.4 0.9 0.3 -0 -0.5 0.5 0.1
  0 -0.8 -0.2 -0.4 -0.2 0.3 -0.7 0.4 -0.7 -1 -0.2 -0 -0.9 0.2 -0.6 -0.5 -1 0.1 -0.8 -0.2 -0.2 0.4
  0.6 0.8 -0.4 0.5 0.2 -0.2 -0.6 -1 0.5 -0.6

example float32 3x2x4, axis -2, num 2
attr axis INT -2
attr num INT 2
in Y@GRAD float32 [3, 2, 4] -0.8 0.3 -0.2 0.2 0.4 0.4 0.9 0.3 0 -0.8 -0.2 -0.4 -0.7 -1 -0.2 -0 -1
  0.1 -0.8 -0.2 -0.4 0.5 0.2 -0.2
in Y@GRAD float32 [3, 2, 4] -0.3 -0.9 -0.8 0.7 -0 -0.5 0.5 0.1 -0.2 0.3 -0.7 0.4 -0.9 0.2 -0.6 -0.5
  -0.2 0.4 0.6 0.8 -0.6 -1 0.5 -0.6
out X@GRAD float32 [3, 2, 2, 4] -0.8 0.3 -0.2 0.2 -0.3 -0.9 -0.8 0.7 0.4 0.4 0.9 0.3 -0 -0.5 0.5 0.1
  0 -0.8 -0.2 -0.4 -0.2 0.3 -0.7 0.4 -0.7 -1 -0.2 -0 -0.9 0.2 -0.6 -0.5 -1 0.1 -0.8 -0.2 -0.2 0.4
  0.6 0.8 -0.4 0.5 0.2 -0.2 -0.6 -1 0.5 -0.6
)")

HEDDLE_EXAMPLES(unbind, R"(
example complex64 3x2x2, axis -1
attr axis INT -1
in X complex64 [3, 2, 2] 0.8+0.6j 1.5-1.5j 0.9-0.9j -1.1+1.8j 1.5-0.7j -1.2-0.2j 1+1.3j -0.3-1.2j
  -1.4-0.1j 0.8+0.1j 0.6+1.3j 0.2-0.6j
out Out complex64 [3, 2] 0.8+0.6j 0.9-0.9j 1.5-0.7j 1+1.3j -1.4-0.1j 0.6+1.3j
out Out complex64 [3, 2] 1.5-1.5j -1.1+1.8j -1.2-0.2j -0.3-1.2j 0.8+0.1j 0.2-0.6j

example float64 3x2x2, axis 2
attr axis INT 2
in X float64 [3, 2, 2] 7 1 3 8 5 2 11 9 0 3 9 9
out Out float64 [3, 2] 7 3 5 11 0 9
out Out float64 [3, 2] 1 8 2 9 3 9

example complex128 3x2x2, axis -2
attr axis INT -2
in X complex128 [3, 2, 2] 1-1.7j 1.4+0.2j -0.4-0.7j -0.6+0.8j 0.6+0.1j -1.3+1.1j -0.2+1.4j -1.5+0.1j
  -0.5-0.1j 0.2+1.6j -0.3-1.7j -1.7-1.1j
out Out complex128 [3, 2] 1-1.7j 1.4+0.2j 0.6+0.1j -1.3+1.1j -0.5-0.1j 0.2+1.6j
out Out complex128 [3, 2] -0.4-0.7j -0.6+0.8j -0.2+1.4j -1.5+0.1j -0.3-1.7j -1.7-1.1j

example float32 2x3
in X float32 [2, 3] 0.334 0.72 0.463 0.849 0.205 0.592
out Out float32 [3] 0.334 0.72 0.463
out Out float32 [3] 0.849 0.205 0.592

example int32 2x3
in X int32 [2, 3] 1 1 0 0 1 1
out Out int32 [3] 1 1 0
out Out int32 [3] 0 1 1

example int64 2x3
in X int64 [2, 3] 1 1 0 0 1 1
out Out int64 [3] 1 1 0
out Out int64 [3] 0 1 1

example bool 2x3
in X bool [2, 3] 0 0 0 1 1 0
out Out bool [3] 0 0 0
out Out bool [3] 1 1 0

example bfloat16 2x3
in X bfloat16 [2, 3] 0.334 0.72 0.463 0.848 0.205 0.594
out Out bfloat16 [3] 0.334 0.72 0.463
out Out bfloat16 [3] 0.848 0.205 0.594

example float16 2x3
in X float16 [2, 3] 0.334 0.72 0.463 0.849 0.205 0.592
out Out float16 [3] 0.334 0.72 0.463
out Out float16 [3] 0.849 0.205 0.592
)")

HEDDLE_EXAMPLES(unstack, R"(
example float32 axis 0
attr axis INT 0
attr num INT 2
in X float32 [2, 3] 0.71 -0.1 -0.86 0.59 -0.01 -0.86
out Y float32 [3] 0.71 -0.1 -0.86
out Y float32 [3] 0.59 -0.01 -0.86

example float32 axis 1
attr axis INT 1
attr num INT 3
in X float32 [2, 3] 0.23 0.14 -0.06 -0.31 -0.41 -0.57
out Y float32 [2] 0.23 -0.31
out Y float32 [2] 0.14 -0.41
out Y float32 [2] -0.06 -0.57

example float64 axis 0
attr axis INT 0
attr num INT 2
in X float64 [2, 3] 0.16 0.82 1 0.7 -0.53 0.95
out Y float64 [3] 0.16 0.82 1
out Y float64 [3] 0.7 -0.53 0.95

example float64 axis 1
attr axis INT 1
attr num INT 3
in X float64 [2, 3] 0.63 0.15 0.8 -0.97 0.82 -0.78
out Y float64 [2] 0.63 -0.97
out Y float64 [2] 0.15 0.82
out Y float64 [2] 0.8 -0.78
)")
