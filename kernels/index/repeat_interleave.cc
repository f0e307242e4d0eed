// repeat_interleave: repeats each item along one axis.
#include "core/interrupts.h"
#include "core/shapes.h"
#include "kernels/index/axis_items.h"
#include "kernels/index/index_args.h"
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

HEDDLE_EXAMPLES(repeat_interleave, R"(
example float32 3x4, dim 1
attr dim INT 1
in RepeatsTensor int32 [4] 0 1 2 1
in X float32 [3, 4] 6 6 8 11 7 10 10 11 2 4 5 9
out Out float32 [3, 4] 6 8 8 11 10 10 10 11 4 5 5 9

example float32 2x1x3, Repeats 3, dim 2
attr Repeats INT 3
attr dim INT 2
in X float32 [2, 1, 3] -0.51 0.19 -0.27 0.43 -0.74 -0.04
out Out float32 [2, 1, 9] -0.51 -0.51 -0.51 0.19 0.19 0.19 -0.27 -0.27 -0.27 0.43 0.43 0.43 -0.74
  -0.74 -0.74 -0.04 -0.04 -0.04

example float32 4, Repeats 3
attr Repeats INT 3
in X float32 [4] 0.03 0.44 0.24 -0.17
out Out float32 [12] 0.03 0.03 0.03 0.44 0.44 0.44 0.24 0.24 0.24 -0.17 -0.17 -0.17

example float32 3x4, dim -1
attr dim INT -1
in RepeatsTensor int32 [4] 0 1 2 1
in X float32 [3, 4] 2*4 6 6 8 9 5 6 8 9
out Out float32 [3, 4] 2*4 6 8 8 9 6 8 8 9

example float64 4, Repeats 3
attr Repeats INT 3
in X float64 [4] 0.03 0.44 0.24 -0.17
out Out float64 [12] 0.03 0.03 0.03 0.44 0.44 0.44 0.24 0.24 0.24 -0.17 -0.17 -0.17

example int64 4, Repeats 3
attr Repeats INT 3
in X int64 [4] 0*4
out Out int64 [12] 0*12

example bfloat16 4, Repeats 3
attr Repeats INT 3
in X bfloat16 [4] 0.03 0.44 0.24 -0.17
out Out bfloat16 [12] 0.03 0.03 0.03 0.44 0.44 0.44 0.24 0.24 0.24 -0.17 -0.17 -0.17
)")

HEDDLE_EXAMPLES(repeat_interleave_grad, R"(
example float64 12, Repeats 3
attr Repeats INT 3
in Out@GRAD float64 [12] -0.9 0.4 0.6 0.6 0.9 -0.1 0.7 -0.5 -0.9 -0 0.3 0.8
in X float64 [4] -0.17 0.03 0.44 0.24
out X@GRAD float64 [4] 0.09999999999999998 1.4 -0.7000000000000001 1.1

example float64 2x8x3, Repeats 2, dim 1
attr Repeats INT 2
attr dim INT 1
in Out@GRAD float64 [2, 8, 3] 0.6 -0.1 0.3 0.8 0.3 0.8 0.4 0.3 -0.8 -0.9 -0.6 -0.5 -0.7 0.7 -0.4 0.6
  -0.5 -0.1 -0.7 0.8 0.7 0.7 0.4 -0.3 -0.6 -0.3 0.7 0 -0.7 -0.7 1 0.9 -0.9 -0.7 0.6 0.4 -0.1 0.8
  -0.8 0.8 -0.8 0.2 0.6 -0.7 0.9 0.4 -0.8 -0.3
in X float64 [2, 4, 3] 0.241 0.916 0.162 0.281 0.956 0.837 0.122 0.717 0.757 0.678 0.598 0.439 0.638
  0.201 0.479 0.519 0.4 0.36 0.559 0.876 0.082 0.042 0.32 0.797
out X@GRAD float64 [2, 4, 3] 1.4 0.19999999999999998 1.1 -0.5 -0.3 -1.3 -0.09999999999999998
  0.19999999999999996 -0.5 0 1.2000000000000002 0.39999999999999997 -0.6 -1 0 0.30000000000000004
  1.5 -0.5 0.7000000000000001 0 -0.6000000000000001 1 -1.5 0.6000000000000001

example float32 12, Repeats 3
attr Repeats INT 3
in Out@GRAD float32 [12] -0.9 0.4 0.6 0.6 0.9 -0.1 0.7 -0.5 -0.9 -0 0.3 0.8
in X float32 [4] -0.17 0.03 0.44 0.24
out X@GRAD float32 [4] 0.10000005 1.4 -0.7 1.1
)")
