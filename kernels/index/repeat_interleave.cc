// repeat_interleave: repeats each item along one axis.
#include "core/interrupts.h"
#include "core/shapes.h"
#include "kernels/base/index_args.h"
#include "kernels/index/axis_items.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

// Number of repeats per item; `n` items, `total` results.
struct Counts {
  const Tensor* each = nullptr;  // nullptr: `all` times every one
  int64_t all = 0, total = 0;
};

// `n` items, `all` times each.
Status CountAll(Key of, int64_t n, int64_t all, Counts* counts) {
  counts->each = nullptr;
  counts->all = all;
  if (all < 0) return InvalidArgument("'", of.name, "' is ", all, "; expected 0 or more");
  if (__builtin_mul_overflow(n, all, &counts->total))
    return InvalidArgument("'", of.name, "' is ", all, ", too many for ", n, " items");
  return Status::Ok();
}

Status ReadCounts(const OpContext& ctx, int64_t n, const Tensor* each, Counts* counts) {
  if (each == nullptr) return CountAll("Repeats", n, ctx.Int("Repeats"), counts);
  counts->each = each;
  HEDDLE_RETURN_IF_ERROR(CheckIntDType(each->dtype(), "RepeatsTensor"));
  if (each->numel() == 1) return CountAll("RepeatsTensor", n, IntAt(*each, 0), counts);
  if (each->numel() != n)
    return InvalidArgument("'RepeatsTensor' has ", each->numel(), " values for ", n, " items");
  counts->total = 0;
  for (const int64_t i : Watched(n)) {
    if (IntAt(*each, i) < 0) return InvalidArgument("'RepeatsTensor' holds a negative value");
    if (__builtin_add_overflow(counts->total, IntAt(*each, i), &counts->total))
      return InvalidArgument("'RepeatsTensor' holds more than there can be");
  }
  return Status::Ok();
}

Status RepeatShape(ShapeContext& ctx) {
  Shape out = ctx.InShape("X");
  if (!out.known_rank()) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const int axis, ItemAxis(ctx, "dim", out));
  const Tensor* each = ctx.HasIn("RepeatsTensor") ? ctx.InValue("RepeatsTensor") : nullptr;
  if (ctx.HasIn("RepeatsTensor") && each == nullptr) return ctx.Defer();
  if (out[axis] >= 0) {
    Counts counts;
    HEDDLE_RETURN_IF_ERROR(ReadCounts(ctx, out[axis], each, &counts));
    out[axis] = counts.total;
  }
  ctx.SetOut("Out", out, ctx.InDType("X"));
  return Status::Ok();
}

// For every result the item it repeats, of `n`; `repeated` has the results along the axis.
Result<Tensor> Sources(const KernelContext& ctx, int64_t n, const Tensor& repeated, int axis) {
  Counts counts;
  HEDDLE_RETURN_IF_ERROR(ReadCounts(ctx, n, ctx.InOpt("RepeatsTensor"), &counts));
  if (axis >= repeated.rank() || counts.total != repeated.dim(axis))
    return InvalidArgument("the repeats give ", counts.total, " items along dimension ", axis,
                           ", but there is ", repeated.shape().ToString());
  Tensor index = ctx.Scratch(DType::kI64, Shape{counts.total});
  int64_t* at = index.mutable_data<int64_t>();
  for (const int64_t i : Watched(n)) {
    const int64_t times = counts.each != nullptr ? IntAt(*counts.each, i) : counts.all;
    for (int64_t k = 0; k < times; ++k) *at++ = i;
  }
  return index;
}

Status Repeat(KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  HEDDLE_ASSIGN_OR_RETURN(const int axis, ItemAxis(ctx, "dim", x.shape()));
  HEDDLE_ASSIGN_OR_RETURN(const Tensor index, Sources(ctx, x.dim(axis), ctx.Out("Out"), axis));
  return TakeItems(ctx, x, axis, index, ctx.Out("Out"));
}

Status RepeatGrad(KernelContext& ctx) {
  Tensor& out = ctx.Out("X@GRAD");
  HEDDLE_ASSIGN_OR_RETURN(const int axis, ItemAxis(ctx, "dim", out.shape()));
  HEDDLE_ASSIGN_OR_RETURN(const Tensor index,
                          Sources(ctx, out.dim(axis), ctx.In("Out@GRAD"), axis));
  ZeroBytes(ctx, out.mutable_raw(), out.bytes());
  return AddItems(ctx, ctx.In("Out@GRAD"), axis, index, out);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(repeat_interleave) {
  op.Doc("Every item of X along `dim` repeated Repeats times, or as RepeatsTensor says for each.")
      .Input("X")
      .Input("RepeatsTensor", kOptional | kShapeValue)
      .Output("Out")
      .Attr("Repeats", 0)
      .Attr("dim", 0)
      .InferShape(RepeatShape)
      .AnyKernel(Repeat);
}

HEDDLE_OP(repeat_interleave_grad) {
  op.Input("Out@GRAD")
      .Input("X", kNoBuffer)
      .Input("RepeatsTensor", kOptional)
      .Output("X@GRAD")
      .Attr("Repeats", 0)
      .Attr("dim", 0)
      .InferShape(GradLikeInputs)
      .AnyKernel(RepeatGrad);
}
