#include <algorithm>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "core/shapes.h"
#include "kernels/index/index_args.h"
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
      .Input("x", kNoBuffer | kOptional)
      .Output("x@GRAD", kOptional)
      .Output("value@GRAD", kOptional)
      .Attr("accumulate", false)
      .InferShape(IndexPutGradShapes)
      .AnyKernel(IndexPutGrad);
}

HEDDLE_EXAMPLES(index_put, R"(
example float32 2x3
in indices bool [1] 1
in value float32 [2, 3] 0.203 0.492 0.299 0.106 0.589 0.396
in x float32 [1, 2, 3] 0.88 0.73 0.7 1.1 1.4 0.61
out out float32 [1, 2, 3] 0.203 0.492 0.299 0.106 0.589 0.396

example float32 5x2
in indices int64 [3, 1] 0 1 0
in value float32 [] 100
in x float32 [5, 2] 6 2 4 3 3 2 2 7 0 8
out out float32 [5, 2] 100*4 3 2 2 7 0 8

example float32 2
in indices int64 [1] 0
in value float32 [] 100
in x float32 [2] 0 1
out out float32 [2] 100 1

example float64 2x3
in indices bool [1] 1
in value float64 [2, 3] 0.203 0.492 0.299 0.106 0.589 0.396
in x float64 [1, 2, 3] 0.88 0.73 0.7 1.1 1.4 0.61
out out float64 [1, 2, 3] 0.203 0.492 0.299 0.106 0.589 0.396

example complex64 2x3
in indices bool [1] 1
in value complex64 [2, 3] 0.203+0.8j 0.492+0.3j 0.299+0.5j 0.106-0.7j 0.589-0.8j 0.396+0.6j
in x complex64 [1, 2, 3] 0.88-0.3j 0.73+0.1j 0.7-0.5j 1.1+0.1j 1.4-0.2j 0.61+0.4j
out out complex64 [1, 2, 3] 0.203+0.8j 0.492+0.3j 0.299+0.5j 0.106-0.7j 0.589-0.8j 0.396+0.6j

example bfloat16 2x3
in indices bool [1] 1
in value bfloat16 [2, 3] 0.203 0.492 0.299 0.106 0.59 0.396
in x bfloat16 [1, 2, 3] 0.88 0.73 0.7 1.1 1.4 0.61
out out bfloat16 [1, 2, 3] 0.203 0.492 0.299 0.106 0.59 0.396

example float16 2x3
in indices bool [1] 1
in value float16 [2, 3] 0.203 0.492 0.299 0.106 0.589 0.396
in x float16 [1, 2, 3] 0.88 0.73 0.7 1.1 1.4 0.61
out out float16 [1, 2, 3] 0.203 0.492 0.299 0.106 0.589 0.396
)")

HEDDLE_EXAMPLES(index_put_grad, R"(
example float32 4x2x5
in indices int64 [3] 0 1 3
in out@GRAD float32 [4, 2, 5] -0.5 0.8 -0.9 -1 -0.4 -0.4 -0.7 -0.3 -0.5 0.9 -0.5 -0.6 -0.9 0.7 0.2
  0.8 -0.4 -1 0.7 -0.6 0.5 -0.7 -0.7 -0.9 0.6 -0.8 0.9 0.2 0.4 0.2 0.9 0.9 0 -0.2 0.1 -1 0.7 0.2 0.5
  0.4
in value float32 [5] 1*5
in x float32 [4, 2, 5] 1*40
out value@GRAD float32 [5] -0.7 0.6999999 -2.8999999 0.19999999 0.5999999
out x@GRAD float32 [4, 2, 5] 0*20 0.5 -0.7 -0.7 -0.9 0.6 -0.8 0.9 0.2 0.4 0.2 0*10

example float64 4x2x5
in indices int64 [3] 0 1 3
in out@GRAD float64 [4, 2, 5] -0.5 0.8 -0.9 -1 -0.4 -0.4 -0.7 -0.3 -0.5 0.9 -0.5 -0.6 -0.9 0.7 0.2
  0.8 -0.4 -1 0.7 -0.6 0.5 -0.7 -0.7 -0.9 0.6 -0.8 0.9 0.2 0.4 0.2 0.9 0.9 0 -0.2 0.1 -1 0.7 0.2 0.5
  0.4
in value float64 [5] 1*5
in x float64 [4, 2, 5] 1*40
out value@GRAD float64 [5] -0.7 0.7000000000000001 -2.9 0.19999999999999996 0.6000000000000001
out x@GRAD float64 [4, 2, 5] 0*20 0.5 -0.7 -0.7 -0.9 0.6 -0.8 0.9 0.2 0.4 0.2 0*10

example bool 4x2x5
in indices int64 [3] 0 1 3
in out@GRAD bool [4, 2, 5] 1*32 0 1*7
in value bool [5] 1*5
in x bool [4, 2, 5] 1*40
out value@GRAD bool [5] 1*5
out x@GRAD bool [4, 2, 5] 0*20 1*10 0*10
)")
