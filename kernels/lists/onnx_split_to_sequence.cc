// A tensor cut into a sequence, and a sequence joined to a tensor.
#include <algorithm>

#include "core/interrupts.h"
#include "core/operands/slot_kinds.h"
#include "core/shapes.h"
#include "kernels/lists/sequence_items.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

int64_t RowBytes(const Tensor& t, int axis) {
  return t.shape().Product(axis, t.rank()) * static_cast<int64_t>(SizeOf(t.dtype()));
}

// A scalar: parts of that length, the last one shorter; a list: the lengths; nothing: of 1.
Result<Ints> LengthsOf(const KernelContext& ctx, int64_t n) {
  const Tensor* split = ctx.InOpt("split");
  if (split == nullptr) return Ints(static_cast<size_t>(n), 1);
  const Ints values = ToInts(*split);
  Ints lengths;
  if (split->rank() == 0) {
    if (values[0] <= 0) return InvalidArgument("'split' is ", values[0], "; expected at least 1");
    for (int64_t at = 0; at < n; at += values[0]) lengths.push_back(std::min(values[0], n - at));
    return lengths;
  }
  int64_t sum = 0;
  for (int64_t v : values) {
    if (v < 0 || v > n - sum)
      return InvalidArgument("'split' cuts a length of ", v, " behind ", sum, " of ", n);
    sum += v;
  }
  if (sum != n) return InvalidArgument("'split' names ", sum, " of ", n, " places");
  return values;
}

Status Cut(KernelContext& ctx) {
  const Tensor& x = ctx.In("input");
  HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(ctx.Int("axis"), x.rank()));
  if (x.rank() == 0) return InvalidArgument("'input' is a scalar, which has no axis to cut");
  HEDDLE_ASSIGN_OR_RETURN(const Ints lengths, LengthsOf(ctx, x.dim(axis)));
  const bool drop = ctx.InOpt("split") == nullptr && ctx.Int("keepdims") == 0;
  const int64_t rows = x.shape().Product(0, axis), row = RowBytes(x, axis);
  const int64_t unit = x.dim(axis) == 0 ? 0 : row / x.dim(axis);
  const auto* from = static_cast<const std::byte*>(x.raw());
  TensorArray made;
  for (int64_t length : lengths) {
    LookForInterrupt();
    Shape shape = x.shape();
    shape[axis] = length;
    Tensor t = ctx.Scratch(x.dtype(), shape);
    if (t.numel() > 0)
      CopyRows(ctx, from, row, static_cast<std::byte*>(t.mutable_raw()), length * unit, rows,
               length * unit);
    from += length * unit;
    if (drop) {
      shape.erase(axis);
      t = t.Reshaped(shape);
    }
    made.push_back(std::move(t));
  }
  ctx.OutVar("output_sequence")->mutable_array() = std::move(made);
  return Status::Ok();
}

// Joins the items on an axis of theirs, or on a new one.
Status Join(KernelContext& ctx, const TensorArray& items, int64_t wanted_axis, bool stack,
            bool reverse, Key out_key) {
  const Tensor& first = items.front();
  HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(wanted_axis, first.rank() + (stack ? 1 : 0)));
  int64_t whole = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    const Tensor& item = items[i];
    bool fits =
        item.dtype() == first.dtype() && item.rank() == first.rank() && (stack || first.rank() > 0);
    for (int d = 0; fits && d < first.rank(); ++d)
      fits = item.dim(d) == first.dim(d) || (!stack && d == axis);
    if (!fits)
      return InvalidArgument("item ", i, " (", Name(item.dtype()), " ", item.shape().ToString(),
                             ") cannot be joined along axis ", axis, " to item 0 (",
                             Name(first.dtype()), " ", first.shape().ToString(), ")");
    whole += stack ? 1 : item.dim(axis);
  }
  Shape shape = first.shape();
  if (stack && shape.rank() == Shape::kMaxRank)
    return InvalidArgument("too many dimensions to add one");
  if (stack)
    shape.insert(axis, whole);
  else
    shape[axis] = whole;
  Tensor& out = ctx.Alloc(out_key, first.dtype(), shape);
  if (out.numel() == 0) return Status::Ok();
  const int64_t rows = shape.Product(0, axis), row = RowBytes(out, axis);
  auto* to = static_cast<std::byte*>(out.mutable_raw());
  for (size_t i = 0; i < items.size(); ++i) {
    const Tensor& item = items[reverse ? items.size() - 1 - i : i];
    const int64_t bytes = RowBytes(item, axis);
    if (item.numel() > 0) CopyRows(ctx, item.raw(), bytes, to, row, rows, bytes);
    to += bytes;
  }
  return Status::Ok();
}

Status ConcatFromSequence(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const TensorArray* items, SequenceIn(ctx, "input_sequence"));
  if (items->empty()) return InvalidArgument("'input_sequence' is empty: there is nothing to join");
  return Join(ctx, *items, ctx.Int("axis"), ctx.Int("new_axis") != 0, false, "concat_result");
}

// Stacks the items that a loop made, one in each turn. After no turns only the type is known.
Status StackArray(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const TensorArray* items, SequenceIn(ctx, "X"));
  if (items->empty()) {
    const Ints& item = ctx.IntList("item_shape");
    const auto rank = static_cast<int64_t>(item.size());
    const int64_t axis = ctx.Int("axis"),
                  at = std::clamp<int64_t>(axis < 0 ? axis + rank + 1 : axis, 0, rank);
    Shape shape;
    for (int64_t i = 0; i <= rank; ++i) {
      if (i == at) shape.push_back(0);
      if (i < rank) shape.push_back(std::max<int64_t>(item[static_cast<size_t>(i)], 0));
    }
    ctx.Alloc("Out", DTypeFromProto(ctx.Int("dtype")), shape);
    return Status::Ok();
  }
  return Join(ctx, *items, ctx.Int("axis"), true, ctx.Bool("reverse"), "Out");
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_split_to_sequence) {
  op.Doc("input cut along an axis: in parts of a length, of the lengths listed, or in single items")
      .Input("input")
      .Input("split", kOptional)
      .Output("output_sequence", kArrayOnly)
      .Attr("axis", 0)
      .Attr("keepdims", 1)
      .AnyKernel(Cut);
}

HEDDLE_OP(onnx_concat_from_sequence) {
  op.Doc("the items joined along an axis, or along a new one")
      .Input("input_sequence", kAnyKind | kArrayOnly)
      .Output("concat_result")
      .Attr("axis", 0)
      .Attr("new_axis", 0)
      .AnyKernel(ConcatFromSequence);
}

HEDDLE_OP(onnx_stack_array) {
  op.Doc("the items of the array X on a new axis; of no items, an empty tensor of `dtype`")
      .Input("X", kAnyKind | kArrayOnly)
      .Output("Out")
      .Attr("axis", 0)
      .Attr("dtype", 5)
      .Attr("item_shape", Ints{})
      .Attr("reverse", false)
      .AnyKernel(StackArray);
}
