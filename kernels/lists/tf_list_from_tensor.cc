#include "core/memory/bytes.h"
#include "core/operands/slot_kinds.h"
#include "kernels/lists/list_items.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

// The rows of a tensor one after another, in memory that they share.
class RowCopies {
 public:
  RowCopies(const KernelContext& ctx, const Tensor& from)
      : row_(from.shape()), copy_(ctx.Scratch(from.dtype(), from.shape())) {
    row_.erase(0);
    CopyBytes(ctx, from.raw(), copy_.mutable_raw(), from.bytes());
  }
  Tensor Row(int64_t i) const {
    return {copy_.dtype(), row_, copy_.buffer(),
            static_cast<size_t>(i) * BytesFor(copy_.dtype(), row_)};
  }
  // Rows `begin` to `end`, with the first axis.
  Tensor Rows(int64_t begin, int64_t end) const {
    Shape shape = copy_.shape();
    shape[0] = end - begin;
    return {copy_.dtype(), shape, copy_.buffer(),
            static_cast<size_t>(begin) * BytesFor(copy_.dtype(), row_)};
  }

 private:
  Shape row_;
  Tensor copy_;
};

Status NeedsRows(const Tensor& t) {
  if (t.rank() > 0) return Status::Ok();
  return InvalidArgument("'tensor' is a scalar, which has no rows");
}

Status RowShape(ShapeContext& ctx) {
  Shape row = ctx.InShape("tensor");
  if (!row.known_rank() || row.rank() == 0) return ctx.Defer();
  row.erase(0);
  // The list's other items keep their shape.
  const Tensor* item = ctx.def().FindInput("list") < 0 ? nullptr : PlannedItem(KnownList(ctx));
  if (item != nullptr && (item->shape() != row || item->dtype() != ctx.InDType("tensor")))
    return ctx.Defer();
  ctx.SetOut("Out", row, ctx.InDType("tensor"));
  return Status::Ok();
}

Status FromTensor(KernelContext& ctx) {
  const Tensor& x = ctx.In("tensor");
  HEDDLE_RETURN_IF_ERROR(NeedsRows(x));
  if (x.dim(0) > kMostListItems)
    return InvalidArgument("a list of ", x.dim(0), " items; expected at most ", kMostListItems);
  const RowCopies rows(ctx, x);
  TensorArray& out = ctx.OutVar("Out")->mutable_array();
  out.clear();
  out.reserve(static_cast<size_t>(x.dim(0)));
  for (int64_t i = 0; i < x.dim(0); ++i) out.push_back(rows.Row(i));
  return Status::Ok();
}

Status Split(KernelContext& ctx) {
  const Tensor& x = ctx.In("tensor");
  HEDDLE_RETURN_IF_ERROR(NeedsRows(x));
  const RowCopies rows(ctx, x);
  TensorArray made;
  int64_t at = 0;
  for (int64_t n : ToInts(ctx.In("lengths"))) {
    if (n < 0 || n > x.dim(0) - at)
      return InvalidArgument("'lengths' cuts ", n, " rows behind ", at, " of ", x.dim(0));
    made.push_back(rows.Rows(at, at + n));
    at += n;
  }
  if (at != x.dim(0)) return InvalidArgument("'lengths' names ", at, " of ", x.dim(0), " rows");
  ctx.OutVar("Out")->mutable_array() = std::move(made);
  return Status::Ok();
}

Status Scatter(KernelContext& ctx) {
  const Tensor& x = ctx.In("tensor");
  HEDDLE_RETURN_IF_ERROR(NeedsRows(x));
  CallHeap heap(ctx);
  const std::pmr::vector<int64_t> places = IntsIn(ctx.In("indices"), &heap);
  if (std::ssize(places) != x.dim(0))
    return InvalidArgument("'indices' has ", places.size(), " places for ", x.dim(0), " rows");
  const RowCopies rows(ctx, x);
  HEDDLE_ASSIGN_OR_RETURN(TensorArray* const out, ListOut(ctx));
  for (size_t i = 0; i < places.size(); ++i) {
    const int64_t at = places[i];
    const bool grows = ctx.Bool("resize") && at >= 0 && at < kMostListItems;
    if (at < 0 || (at >= std::ssize(*out) && !grows))
      return OutOfRange("item ", at, " of a list of ", out->size(), " items cannot be set");
    if (at >= std::ssize(*out)) out->resize(static_cast<size_t>(at) + 1);
    (*out)[static_cast<size_t>(at)] = rows.Row(static_cast<int64_t>(i));
  }
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(tf_list_from_tensor) {
  op.Doc("the rows of tensor as a list").Input("tensor").Output("Out", kAnyKind | kArrayOnly);
  op.InferShape(RowShape).AnyKernel(FromTensor);
}

HEDDLE_OP(tf_list_split) {
  op.Doc("tensor cut along its first axis into parts of these lengths");
  op.Input("tensor").Input("lengths").Output("Out", kArrayOnly).AnyKernel(Split);
}

HEDDLE_OP(tf_list_scatter) {
  op.Doc(
      "list with the rows of tensor at indices, the last of equal ones; without list, Out changes "
      "in place");
  op.Input("list", kAnyKind | kArrayOnly | kOptional)
      .Input("tensor")
      .Input("indices")
      .Output("Out", kAnyKind | kArrayOnly);
  op.Attr("resize", false).InferShape(RowShape).AnyKernel(Scatter);
}
