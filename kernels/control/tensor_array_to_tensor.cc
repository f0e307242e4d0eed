#include "core/interrupts.h"
#include "core/operands/slot_kinds.h"
#include "core/shapes.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

struct Layout {
  bool stack;
  int axis;
};

Result<Layout> LayoutOf(const KernelContext& ctx, const Tensor& first) {
  const bool stack = ctx.Bool("use_stack");
  HEDDLE_ASSIGN_OR_RETURN(const int axis,
                          NormalAxis(ctx.Int("axis"), first.rank() + (stack ? 1 : 0)));
  return Layout{stack, axis};
}

// Bytes of one item's row: everything from the axis on.
int64_t RowBytes(const Tensor& item, int axis) {
  return item.shape().Product(axis, item.rank()) * static_cast<int64_t>(SizeOf(item.dtype()));
}

Status CheckItem(const Tensor& item, const Tensor& first, const Layout& l, size_t i) {
  bool fits = item.initialized() && item.dtype() == first.dtype() && item.rank() == first.rank();
  for (int d = 0; fits && d < first.rank(); ++d)
    fits = item.dim(d) == first.dim(d) || (!l.stack && d == l.axis);
  if (fits && (l.stack || first.rank() > 0)) return Status::Ok();
  return InvalidArgument("item ", i, " of 'X' (", Name(item.dtype()), " ", item.shape().ToString(),
                         ") cannot be joined along axis ", l.axis, " to item 0 (",
                         Name(first.dtype()), " ", first.shape().ToString(), ")");
}

Result<const TensorArray*> NonEmptyArrayIn(const KernelContext& ctx) {
  const Value* x = ctx.InVar("X");
  if (x == nullptr || !x->is_array() || !x->initialized() || x->array().empty())
    return InvalidArgument("'X' must be a tensor array with at least one item");
  return &x->array();
}

Status Join(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const TensorArray* items, NonEmptyArrayIn(ctx));
  const Tensor& first = items->front();
  HEDDLE_ASSIGN_OR_RETURN(const Layout l, LayoutOf(ctx, first));
  int64_t whole = 0;
  for (size_t i = 0; i < items->size(); ++i) {
    HEDDLE_RETURN_IF_ERROR(CheckItem((*items)[i], first, l, i));
    whole += l.stack ? 1 : (*items)[i].dim(l.axis);
  }
  Shape shape = first.shape();
  if (l.stack) {
    if (shape.rank() == Shape::kMaxRank) return InvalidArgument("too many dimensions to add one");
    shape.insert(l.axis, whole);
  } else {
    shape[l.axis] = whole;
  }
  Tensor& out = ctx.Alloc("Out", first.dtype(), shape);
  const int64_t rows = shape.Product(0, l.axis), row = RowBytes(out, l.axis);
  auto* dst = static_cast<std::byte*>(out.mutable_raw());
  for (const Tensor& item : *items) {
    LookForInterrupt();
    const int64_t bytes = RowBytes(item, l.axis);
    CopyRows(ctx, item.raw(), bytes, dst, row, rows, bytes);
    dst += bytes;
  }
  if (ctx.HasOut("OutIndex")) {
    Tensor& index = ctx.Alloc("OutIndex", DType::kI32, Shape{static_cast<int64_t>(items->size())});
    for (size_t i = 0; i < items->size(); ++i)
      index.mutable_data<int32_t>()[i] =
          static_cast<int32_t>(l.stack ? 1 : (*items)[i].dim(l.axis));
  }
  return Status::Ok();
}

Status JoinGrad(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const TensorArray* items, NonEmptyArrayIn(ctx));
  const Tensor& grad = ctx.In("Out@GRAD");
  HEDDLE_ASSIGN_OR_RETURN(const Layout l, LayoutOf(ctx, items->front()));
  if (l.axis >= grad.rank())
    return InvalidArgument("'Out@GRAD' of shape ", grad.shape().ToString(), " has no axis ",
                           l.axis);
  const int64_t rows = grad.shape().Product(0, l.axis), row = RowBytes(grad, l.axis);
  const auto* src = static_cast<const std::byte*>(grad.raw());
  int64_t left = row;
  TensorArray parts;
  for (const Tensor& item : *items) {
    LookForInterrupt();
    const int64_t bytes = RowBytes(item, l.axis);
    left -= bytes;
    if (left < 0 || item.dtype() != grad.dtype() ||
        bytes * rows != static_cast<int64_t>(item.bytes()))
      return InvalidArgument("'Out@GRAD' of shape ", grad.shape().ToString(),
                             " does not fit the items of 'X'");
    parts.push_back(ctx.Scratch(grad.dtype(), item.shape()));
    CopyRows(ctx, src, row, parts.back().mutable_raw(), bytes, rows, bytes);
    src += bytes;
  }
  ctx.OutVar("X@GRAD")->mutable_array() = std::move(parts);
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(tensor_array_to_tensor) {
  op.Doc("The items of the array X joined along `axis` (use_stack: along a new axis).")
      .Input("X", kAnyKind | kArrayOnly)
      .Output("Out")
      .Output("OutIndex", kOptional)
      .Attr("axis", 0)
      .Attr("use_stack", false)
      .AnyKernel(Join);
}
HEDDLE_OP(tensor_array_to_tensor_grad) {
  op.Input("X", kAnyKind | kArrayOnly)
      .Input("Out@GRAD")
      .Output("X@GRAD", kArrayOnly)
      .Attr("axis", 0)
      .Attr("use_stack", false)
      .AnyKernel(JoinGrad);
}
