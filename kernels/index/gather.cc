#include <utility>

#include "core/interrupts.h"
#include "core/operands/any_address.h"
#include "core/shapes.h"
#include "kernels/base/index_args.h"
#include "kernels/index/nd_rows.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

// The axes that Index and X share; `index_shape` is on.
Result<int> BatchAxes(const OpContext& ctx, const Shape& index, int axis) {
  const int64_t given = ctx.Int("batch_dims"), batch = given < 0 ? given + index.rank() : given;
  if (batch < 0 || batch > index.rank() || batch > axis)
    return InvalidArgument("'batch_dims' is ", given, " for 'Index' ", index.ToString(),
                           " and axis ", axis, ", expected at most both");
  return static_cast<int>(batch);
}

// The result where all of Index's shape stands in it.
Result<Shape> SpreadShape(const OpContext& ctx, const Shape& x, const Shape& index, int axis) {
  HEDDLE_ASSIGN_OR_RETURN(const int batch, BatchAxes(ctx, index, axis));
  if (x.rank() - 1 + index.rank() - batch > Shape::kMaxRank)
    return InvalidArgument("the result of 'X' ", x.ToString(), " and 'Index' ", index.ToString(),
                           " has more than ", Shape::kMaxRank, " dimensions");
  for (int i = 0; i < batch; ++i)
    if (x[i] >= 0 && index[i] >= 0 && x[i] != index[i])
      return InvalidArgument("'X' ", x.ToString(), " and 'Index' ", index.ToString(),
                             " differ in batch dimension ", i);
  Shape out;
  for (int i = 0; i < axis; ++i) out.push_back(x[i]);
  for (int i = batch; i < index.rank(); ++i) out.push_back(index[i]);
  for (int i = axis + 1; i < x.rank(); ++i) out.push_back(x[i]);
  return out;
}

Status GatherShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  const Shape& index = ctx.InShape("Index");
  if (!x.known_rank() || !index.known_rank()) return ctx.Defer();
  IntArg axis;
  HEDDLE_RETURN_IF_ERROR(ReadAxis(ctx, "Axis", "axis", x.rank(), &axis));
  if (x.rank() == 0) return InvalidArgument("'X' must have at least one dimension");
  const bool spread = ctx.Bool("index_shape");
  if (!spread && (index.rank() > 2 || (index.rank() == 2 && index[1] != 1 && index[1] >= 0)))
    return InvalidArgument("'Index' must have the shape [n], [n, 1] or [], not ", index.ToString());
  HEDDLE_RETURN_IF_ERROR(CheckIntDType(ctx.InDType("Index"), "Index"));
  if (!axis.known) return ctx.Defer();
  Shape out = x;
  if (spread) {
    HEDDLE_ASSIGN_OR_RETURN(out, SpreadShape(ctx, x, index, static_cast<int>(axis.value)));
  } else if (index.rank() == 0) {
    out.erase(static_cast<int>(axis.value));
  } else {
    out[static_cast<int>(axis.value)] = index[0];
  }
  ctx.SetOut("Out", out, ctx.InDType("X"));
  if (axis.value == 0 && !spread) ctx.ShareLoD("X", "Out");
  return Status::Ok();
}

// X as [outer, axis, inner].
struct Along {
  int64_t outer = 0, inner = 0;
  IndexRange range;
};

Along ViewAlong(const OpContext& ctx, const Shape& x, int axis) {
  Along along{x.Product(0, axis), x.Product(axis + 1, x.rank()), {}};
  along.range.size = x[axis];
  along.range.wrap = ctx.Bool("wrap");
  return along;
}

// What does not depend on the indices.
struct AlongState : KernelState {
  explicit AlongState(const Along& a) : along(a) {}
  Along along;
};

Result<std::unique_ptr<KernelState>> PrepareGather(PrepareContext& ctx) {
  std::unique_ptr<KernelState> none;
  if (ctx.InVar("Axis") != nullptr || ctx.Int("batch_dims") != 0) return none;
  const Shape& x = ctx.InShape("X");
  IntArg axis;
  HEDDLE_RETURN_IF_ERROR(ReadAxis(ctx, "Axis", "axis", x.rank(), &axis));
  return std::unique_ptr<KernelState>(
      new AlongState(ViewAlong(ctx, x, static_cast<int>(axis.value))));
}

struct View : Along {
  const Tensor* index = nullptr;
  Tensor rows;  // what `index` points to if Index is counted anew
};

Status Look(const KernelContext& ctx, const Shape& x, View* view) {
  IntArg axis;
  HEDDLE_RETURN_IF_ERROR(ReadAxis(ctx, "Axis", "axis", x.rank(), &axis));
  const int at = static_cast<int>(axis.value);
  const Tensor& index = ctx.In("Index");
  static_cast<Along&>(*view) = ViewAlong(ctx, x, at);
  view->index = &index;
  HEDDLE_RETURN_IF_ERROR(CheckIndices(index, view->range, "Index"));
  if (ctx.Int("batch_dims") == 0 || view->inner == 0) return Status::Ok();
  HEDDLE_ASSIGN_OR_RETURN(const int batch, BatchAxes(ctx, index.shape(), at));
  // Rows of the whole tensor by their numbers.
  const int64_t each = x.Product(batch, at), picks = index.shape().Product(batch, index.rank());
  const int64_t size = x[at];
  Tensor rows = ctx.Scratch(DType::kI64, Shape{view->outer, picks});
  int64_t* to = rows.mutable_data<int64_t>();
  for (const int64_t o : Watched(view->outer))
    for (int64_t i = 0; i < picks; ++i) {
      const int64_t v = IntAt(index, o / each * picks + i);
      *to++ = o * size + (v < 0 ? v + size : v);
    }
  view->range = GoodRows(view->outer * size);
  view->outer = 1;
  view->rows = std::move(rows);
  view->index = &view->rows;
  return Status::Ok();
}

Status GatherAlong(const KernelContext& ctx, const Tensor& x, const Tensor& index, const Along& a) {
  GatherRows(ctx, x.raw(), index, a.range, a.outer,
             a.inner * static_cast<int64_t>(SizeOf(x.dtype())), ctx.Out("Out").mutable_raw());
  return Status::Ok();
}

Status Gather(KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  if (ctx.has_state()) {
    const Along& along = ctx.State<AlongState>().along;
    const Tensor& index = ctx.In("Index");
    HEDDLE_RETURN_IF_ERROR(CheckIndices(index, along.range, "Index"));
    return GatherAlong(ctx, x, index, along);
  }
  View view;
  HEDDLE_RETURN_IF_ERROR(Look(ctx, x.shape(), &view));
  return GatherAlong(ctx, x, *view.index, view);
}

Status GatherGrad(KernelContext& ctx) {
  const Tensor& grad = ctx.In("Out@GRAD");
  Tensor& out = ctx.Out("X@GRAD");
  View v;
  HEDDLE_RETURN_IF_ERROR(Look(ctx, out.shape(), &v));
  if (v.inner > 0 && grad.numel() != v.outer * v.index->numel() * v.inner)
    return InvalidArgument("'Out@GRAD' of shape ", grad.shape().ToString(), " does not fit 'X' ",
                           out.shape().ToString(), " and 'Index' ",
                           ctx.In("Index").shape().ToString());
  ZeroBytes(ctx, out.mutable_raw(), out.bytes());
  return ScatterAddRows(ctx, grad.raw(), *v.index, v.range, v.outer, v.inner, out.dtype(),
                        out.mutable_raw());
}

// The attributes of gathers that differ from Paddle's.
void DeclareSpread(OpDef& op) {
  op.Attr("index_shape", false).Attr("wrap", false).Attr("batch_dims", 0);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(gather) {
  op.Doc(
        "Items of X along `axis` named by Index, a vector or, with `index_shape`, of any shape, "
        "which then stands in the result; X may share the first batch_dims axes of such an Index. "
        "With `wrap` a negative index counts from the end.")
      .Input("X", kAnyAddress)
      .Input("Index")
      .Input("Axis", kOptional | kShapeValue)
      .Output("Out")
      .Attr("axis", 0)
      .InferShape(GatherShape)
      .Prepare(PrepareGather)
      .AnyKernel(Gather);
  DeclareSpread(op);
}
HEDDLE_OP(gather_grad) {
  op.Input("Out@GRAD")
      .Input("X", kNoBuffer)
      .Input("Index")
      .Input("Axis", kOptional)
      .Output("X@GRAD")
      .Attr("axis", 0)
      .InferShape(GradLikeInputs)
      .AnyKernel(GatherGrad);
  DeclareSpread(op);
}
