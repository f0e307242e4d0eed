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

HEDDLE_EXAMPLES(tensor_array_to_tensor, R"(
example axis 0
attr axis INT 0
attr use_stack BOOLEAN false
in X array 2
item float32 [2, 2] -0.06 -0.68 -0.92 0.49
item float32 [2, 2] -0.29 -0.71 0.22 -0.91
out Out float32 [4, 2] -0.06 -0.68 -0.92 0.49 -0.29 -0.71 0.22 -0.91
out OutIndex ?

example axis 1
attr axis INT 1
attr use_stack BOOLEAN false
in X array 2
item float32 [2, 2] -0.85 -0.41 1 0.74
item float32 [2, 2] -0.62 0.77 0.54 0.92
out Out float32 [2, 4] -0.85 -0.41 -0.62 0.77 1 0.74 0.54 0.92
out OutIndex ?

example axis 0, stacked
attr axis INT 0
attr use_stack BOOLEAN true
in X array 2
item float32 [2, 2] -0.95 -0.38 -0.05 -0.29
item float32 [2, 2] 0.35 -0.99 0.14 -0.76
out Out float32 [2, 2, 2] -0.95 -0.38 -0.05 -0.29 0.35 -0.99 0.14 -0.76
out OutIndex ?

example axis 1, stacked
attr axis INT 1
attr use_stack BOOLEAN true
in X array 2
item float32 [2, 2] 0.03 -0.21 -0.56 -0.22
item float32 [2, 2] -0.33 0.79 -0.87 -0.64
out Out float32 [2, 2, 2] 0.03 -0.21 -0.33 0.79 -0.56 -0.22 -0.87 -0.64
out OutIndex ?
)")

HEDDLE_EXAMPLES(tensor_array_to_tensor_grad, R"(
example axis 0
gradient none: X is a tensor array, which only programs can make
attr axis INT 0
attr use_stack BOOLEAN false
in X array 2
item float32 [2, 1] 0.84 0.83
item float32 [2, 1] 0.71 0.92
in Out@GRAD float32 [4, 1] 0.44 -0.7 0.89 0.15
out X@GRAD array 2
item float32 [2, 1] 0.44 -0.7
item float32 [2, 1] 0.89 0.15

example axis 1
gradient none: X is a tensor array, which only programs can make
attr axis INT 1
attr use_stack BOOLEAN false
in X array 2
item float32 [2, 1] 0.38 -0.85
item float32 [2, 1] 0.42 -0.86
in Out@GRAD float32 [2, 2] -0.49 -0.7 -0.76 -0.23
out X@GRAD array 2
item float32 [2, 1] -0.49 -0.76
item float32 [2, 1] -0.7 -0.23

example axis 0, stacked
gradient none: X is a tensor array, which only programs can make
attr axis INT 0
attr use_stack BOOLEAN true
in X array 2
item float32 [2, 1] 0.52 -0.78
item float32 [2, 1] -0.97 -0.22
in Out@GRAD float32 [2, 2, 1] 0.54 0.9 0.58 0.93
out X@GRAD array 2
item float32 [2, 1] 0.54 0.9
item float32 [2, 1] 0.58 0.93

example axis 1, stacked
gradient none: X is a tensor array, which only programs can make
attr axis INT 1
attr use_stack BOOLEAN true
in X array 2
item float32 [2, 1] 0.94 -0.53
item float32 [2, 1] -0.67 -0.44
in Out@GRAD float32 [2, 2, 1] 0.43 -0.57 0.33 -0.11
out X@GRAD array 2
item float32 [2, 1] 0.43 0.33
item float32 [2, 1] -0.57 -0.11
)")
