#include "core/interrupts.h"
#include "core/memory/bytes.h"
#include "core/operands/slot_kinds.h"
#include "kernels/lists/list_items.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

// The parts of a tensor along an axis, one after another, in memory that they share.
class Parts {
 public:
  Parts(const KernelContext& ctx, const Tensor& from, int axis)
      : ctx_(ctx),
        from_(static_cast<const std::byte*>(from.raw())),
        shape_(from.shape()),
        axis_(axis),
        rows_(shape_.Product(0, axis)),
        unit_(shape_.Product(axis + 1, shape_.rank()) * static_cast<int64_t>(SizeOf(from.dtype()))),
        copy_(ctx.Scratch(from.dtype(), shape_)) {
    if (axis == 0) CopyBytes(ctx, from.raw(), copy_.mutable_raw(), from.bytes());
  }
  // The next part, which is `length` long; with `drop`, of length 1 and without the axis.
  Tensor Next(int64_t length, bool drop) {
    Shape shape = shape_;
    shape[axis_] = length;
    if (drop) shape.erase(axis_);
    const int64_t row = shape_[axis_] * unit_, part = length * unit_;
    auto* to = static_cast<std::byte*>(copy_.mutable_raw()) + rows_ * at_;
    if (axis_ != 0 && rows_ * part > 0) CopyRows(ctx_, from_ + at_, row, to, part, rows_, part);
    const auto begin = static_cast<size_t>(rows_ * at_);
    at_ += part;
    return {copy_.dtype(), shape, copy_.buffer(), begin};
  }

 private:
  const KernelContext& ctx_;
  const std::byte* from_;
  Shape shape_;
  int axis_;
  int64_t rows_, unit_,
      at_ = 0;  // in front of the axis; bytes behind it; bytes of a row that are cut
  Tensor copy_;
};

Status NeedsAxis(const Tensor& t) {
  if (t.rank() > 0) return Status::Ok();
  return InvalidArgument("'tensor' is a scalar, which has no axis to cut");
}

// An item of one place along the axis.
Status PlaceShape(ShapeContext& ctx, int axis, bool drop) {
  Shape item = ctx.InShape("tensor");
  if (drop)
    item.erase(axis);
  else
    item[axis] = 1;
  // The list's other items keep their shape.
  const Tensor* other = ctx.def().FindInput("list") < 0 ? nullptr : PlannedItem(KnownList(ctx));
  if (other != nullptr && (other->shape() != item || other->dtype() != ctx.InDType("tensor")))
    return ctx.Defer();
  ctx.SetOut("Out", item, ctx.InDType("tensor"));
  return Status::Ok();
}

Status SplitShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("tensor");
  if (!x.known_rank() || x.rank() == 0 || ctx.HasIn("lengths")) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(ctx.Int("axis"), x.rank()));
  return PlaceShape(ctx, axis, !ctx.Bool("keepdims"));
}

Status RowShape(ShapeContext& ctx) {
  if (ctx.InShape("tensor").rank() < 1) return ctx.Defer();
  return PlaceShape(ctx, 0, true);
}

// The parts' lengths: a scalar stands for parts of that length, of which the last may be shorter.
Result<std::pmr::vector<int64_t>> LengthsOf(const Tensor& given, int64_t n, CallHeap* heap) {
  std::pmr::vector<int64_t> values = IntsIn(given, heap);
  if (given.rank() == 0) {
    const int64_t each = values[0];
    if (each <= 0) return InvalidArgument("'lengths' is ", each, "; expected at least 1");
    values.clear();
    for (int64_t at = 0; at < n; at += each) values.push_back(std::min(each, n - at));
    return values;
  }
  int64_t sum = 0;
  for (int64_t v : values) {
    if (v < 0 || v > n - sum)
      return InvalidArgument("'lengths' cuts ", v, " places behind ", sum, " of ", n);
    sum += v;
  }
  if (sum != n) return InvalidArgument("'lengths' names ", sum, " of ", n, " places");
  return values;
}

Status Split(KernelContext& ctx) {
  const Tensor& x = ctx.In("tensor");
  HEDDLE_RETURN_IF_ERROR(NeedsAxis(x));
  HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(ctx.Int("axis"), x.rank()));
  TensorArray& out = ctx.OutVar("Out")->mutable_array();
  out.clear();
  if (const Tensor* given = ctx.InOpt("lengths")) {
    CallHeap heap(ctx);
    HEDDLE_ASSIGN_OR_RETURN(const auto lengths, LengthsOf(*given, x.dim(axis), &heap));
    Parts parts(ctx, x, axis);
    out.reserve(lengths.size());
    for (const int64_t length : lengths) {
      LookForInterrupt();
      out.push_back(parts.Next(length, false));
    }
    return Status::Ok();
  }
  if (x.dim(axis) > kMostListItems)
    return InvalidArgument("a list of ", x.dim(axis), " items; expected at most ", kMostListItems);
  out.reserve(static_cast<size_t>(x.dim(axis)));
  Parts parts(ctx, x, axis);
  for (int64_t i = 0; i < x.dim(axis); ++i) {
    LookForInterrupt();
    out.push_back(parts.Next(1, !ctx.Bool("keepdims")));
  }
  return Status::Ok();
}

Status Scatter(KernelContext& ctx) {
  const Tensor& x = ctx.In("tensor");
  HEDDLE_RETURN_IF_ERROR(NeedsAxis(x));
  CallHeap heap(ctx);
  const std::pmr::vector<int64_t> places = IntsIn(ctx.In("indices"), &heap);
  if (std::ssize(places) != x.dim(0))
    return InvalidArgument("'indices' has ", places.size(), " places for ", x.dim(0), " rows");
  Parts rows(ctx, x, 0);
  HEDDLE_ASSIGN_OR_RETURN(TensorArray* const out, ListOut(ctx));
  for (const int64_t at : places) {
    const bool grows = ctx.Bool("resize") && at >= 0 && at < kMostListItems;
    if (at < 0 || (at >= std::ssize(*out) && !grows))
      return OutOfRange("item ", at, " of a list of ", out->size(), " items cannot be set");
    if (at >= std::ssize(*out)) out->resize(static_cast<size_t>(at) + 1);
    (*out)[static_cast<size_t>(at)] = rows.Next(1, true);
  }
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(list_split) {
  op.Doc(
      "tensor cut along an axis into parts of these lengths, or of one length (a scalar); without "
      "lengths into parts of 1, which may lack the axis");
  op.Input("tensor").Input("lengths", kOptional).Output("Out", kAnyKind | kArrayOnly);
  op.Attr("axis", 0).Attr("keepdims", true).InferShape(SplitShape).AnyKernel(Split);
}

HEDDLE_OP(list_scatter) {
  op.Doc(
      "list with the rows of tensor at indices, the last of equal ones; without list, Out changes "
      "in place");
  op.Input("list", kAnyKind | kArrayOnly | kOptional)
      .Input("tensor")
      .Input("indices")
      .Output("Out", kAnyKind | kArrayOnly);
  op.Attr("resize", false).InferShape(RowShape).AnyKernel(Scatter);
}
