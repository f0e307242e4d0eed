#include <algorithm>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "core/shapes.h"
#include "kernels/base/index_args.h"
#include "kernels/index/nd_rows.h"
#include "kernels/strided/index_expand.h"

namespace heddle {
namespace {

// One index per leading axis of x, all of one shape. A mask of rank r stands for r indices: the
// places where it is true.
struct Indices {
  int count = 0;  // leading axes that are indexed
  std::array<Tensor, Shape::kMaxRank> each;
  Shape shape;  // they are broadcast to
};

Status AddIndex(Indices* all, const Tensor& index) {
  if (all->count == Shape::kMaxRank) return InvalidArgument("'indices' index too many axes");
  HEDDLE_ASSIGN_OR_RETURN(all->shape, BroadcastShape(all->shape, index.shape(), -1));
  all->each[all->count++] = index;
  return Status::Ok();
}

Status AddMask(const KernelContext& ctx, const Tensor& mask, const Shape& x, Indices* all) {
  for (int d = 0; d < mask.rank(); ++d)
    if (all->count + d >= x.rank() || mask.dim(d) != x[all->count + d])
      return InvalidArgument("a mask of shape ", mask.shape().ToString(), " does not fit axis ",
                             all->count, " and following of ", x.ToString());
  const bool* set = mask.data<bool>();
  int64_t n = 0;
  for (const auto part : Stretches(mask.numel()))
    for (int64_t i = part.begin; i < part.end; ++i) n += set[i] ? 1 : 0;
  int64_t inner = mask.numel();
  for (int d = 0; d < mask.rank(); ++d) {
    const int64_t size = mask.dim(d);
    inner = size == 0 ? 0 : inner / size;
    Tensor places = ctx.Scratch(DType::kI64, Shape{n});
    int64_t* at = places.mutable_data<int64_t>();
    for (const auto part : Stretches(mask.numel()))
      for (int64_t i = part.begin; i < part.end; ++i)
        if (set[i]) *at++ = i / inner % size;
    HEDDLE_RETURN_IF_ERROR(AddIndex(all, places));
  }
  return Status::Ok();
}

// Rows of x (over its first `count` axes) that the indices name.
Result<Tensor> Rows(const KernelContext& ctx, const Shape& x, Indices* all) {
  for (int i = 0; i < ctx.InCount("indices"); ++i) {
    const Tensor& index = ctx.In("indices", i);
    if (index.dtype() == DType::kBool) {
      HEDDLE_RETURN_IF_ERROR(AddMask(ctx, index, x, all));
    } else {
      HEDDLE_RETURN_IF_ERROR(CheckIntDType(index.dtype(), "indices"));
      HEDDLE_RETURN_IF_ERROR(AddIndex(all, index));
    }
  }
  if (all->count > x.rank())
    return InvalidArgument("'indices' index ", all->count, " axes of ", x.ToString());
  Tensor rows = ctx.Scratch(DType::kI64, all->shape);
  int64_t* out = rows.mutable_data<int64_t>();
  const int64_t n = rows.numel();
  WatchedFill(out, n, 0);
  for (int d = 0; d < all->count; ++d) {
    Tensor expanded = ctx.Scratch(all->each[d].dtype(), all->shape);
    HEDDLE_RETURN_IF_ERROR(RunRepeat(ctx, all->each[d], expanded));
    for (const int64_t i : Watched(n)) {
      const int64_t at = IntAt(expanded, i);
      if (at < -x[d] || at >= x[d])
        return OutOfRange("'indices' [", d, "] holds ", at, "; expected ", -x[d], " to ", x[d] - 1);
      out[i] = out[i] * x[d] + (at < 0 ? at + x[d] : at);
    }
  }
  return rows;
}

// The shape of what the indices take out of x.
Result<Shape> PartShape(const Indices& all, const Shape& x) {
  Shape part = all.shape;
  if (part.rank() + x.rank() - all.count > Shape::kMaxRank)
    return InvalidArgument("'indices' make too many dimensions");
  for (int d = all.count; d < x.rank(); ++d) part.push_back(x[d]);
  return part;
}

Status IndexPut(KernelContext& ctx) {
  const Tensor& x = ctx.In("x");
  const Tensor& value = ctx.In("value");
  Tensor& out = ctx.Out("out");
  Indices all;
  HEDDLE_ASSIGN_OR_RETURN(const Tensor rows, Rows(ctx, x.shape(), &all));
  HEDDLE_ASSIGN_OR_RETURN(const Shape part, PartShape(all, x.shape()));
  if (value.dtype() != x.dtype())
    return InvalidArgument("'value' is ", Name(value.dtype()), ", but 'x' is ", Name(x.dtype()));
  HEDDLE_ASSIGN_OR_RETURN(const Shape both, BroadcastShape(part, value.shape(), -1));
  if (!(both == part))
    return InvalidArgument("'value' of shape ", value.shape().ToString(), " does not fit ",
                           part.ToString());
  Tensor values = ctx.Scratch(x.dtype(), part);
  HEDDLE_RETURN_IF_ERROR(RunRepeat(ctx, value, values));
  CopyBytes(ctx, x.raw(), out.mutable_raw(), out.bytes());
  const int64_t inner = x.shape().Product(all.count, x.rank());
  const IndexRange range = GoodRows(x.shape().Product(0, all.count));
  if (ctx.Bool("accumulate"))
    return ScatterAddRows(ctx, values.raw(), rows, range, 1, inner, x.dtype(), out.mutable_raw());
  ScatterRows(ctx, values.raw(), rows, range, 1, inner * static_cast<int64_t>(SizeOf(x.dtype())),
              out.mutable_raw());
  return Status::Ok();
}

Status IndexPutGrad(KernelContext& ctx) {
  const Tensor& grad = ctx.In("out@GRAD");
  Indices all;
  HEDDLE_ASSIGN_OR_RETURN(const Tensor rows, Rows(ctx, grad.shape(), &all));
  HEDDLE_ASSIGN_OR_RETURN(const Shape part, PartShape(all, grad.shape()));
  const int64_t row =
      grad.shape().Product(all.count, grad.rank()) * static_cast<int64_t>(SizeOf(grad.dtype()));
  if (Tensor* to = ctx.OutOpt("x@GRAD")) {
    CopyBytes(ctx, grad.raw(), to->mutable_raw(), to->bytes());
    if (!ctx.Bool("accumulate")) ZeroRows(to->mutable_raw(), rows, row);
  }
  Tensor* to = ctx.OutOpt("value@GRAD");
  if (to == nullptr) return Status::Ok();
  Tensor taken = ctx.Scratch(grad.dtype(), part);
  GatherRows(ctx, grad.raw(), rows, GoodRows(grad.shape().Product(0, all.count)), 1, row,
             taken.mutable_raw());
  return RunRepeatSum(ctx, taken, *to);
}

Status IndexPutGradShapes(ShapeContext& ctx) {
  const DType dtype = ctx.InDType("out@GRAD");
  if (ctx.HasOut("x@GRAD")) ctx.SetOut("x@GRAD", ctx.InShape("out@GRAD"), dtype);
  if (ctx.HasOut("value@GRAD")) ctx.SetOut("value@GRAD", ctx.InShape("value"), dtype);
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(index_put) {
  op.Doc("x with x[indices] replaced by (accumulate: increased by) value.")
      .Input("x")
      .Input("indices", kList)
      .Input("value")
      .Output("out")
      .Attr("accumulate", false)
      .Inplace("x", "out")
      .InferShape(SameShape)
      .AnyKernel(IndexPut);
}
HEDDLE_OP(index_put_grad) {
  op.Input("out@GRAD")
      .Input("indices", kList)
      .Input("value", kNoBuffer)
      .Input("x", kNoBuffer)
      .Output("x@GRAD", kOptional)
      .Output("value@GRAD", kOptional)
      .Attr("accumulate", false)
      .InferShape(IndexPutGradShapes)
      .AnyKernel(IndexPutGrad);
}
