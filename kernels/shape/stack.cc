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
