// index_select, index_add and repeat_interleave: items along one axis, named by a vector.
#include "core/shapes.h"
#include "kernels/index/index_args.h"
#include "kernels/index/nd_rows.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

struct View {
  int64_t outer, inner;  // inner in elements
  IndexRange range;
};

View Look(const Shape& x, int axis) {
  View v{x.Product(0, axis), x.Product(axis + 1, x.rank()), GoodRows(x[axis])};
  v.range.wrap = true;
  return v;
}

Result<int> Axis(const OpContext& ctx, Key attr, const Shape& x) {
  if (x.rank() == 0) return InvalidArgument("'X' must have at least one dimension");
  return NormalAxis(ctx.Int(attr), x.rank());
}

// dst = items of x, or dst += grad's items at their places.
Status Take(const KernelContext& ctx, const Tensor& x, int axis, const Tensor& index, Tensor& out) {
  const View v = Look(x.shape(), axis);
  HEDDLE_RETURN_IF_ERROR(CheckIndices(index, v.range, "Index"));
  if (out.numel() != v.outer * index.numel() * v.inner)
    return InvalidArgument("a shape of ", out.shape().ToString(), " does not fit ", index.numel(),
                           " items of ", x.shape().ToString());
  GatherRows(ctx, x.raw(), index, v.range, v.outer,
             v.inner * static_cast<int64_t>(SizeOf(x.dtype())), out.mutable_raw());
  return Status::Ok();
}

Status Add(const KernelContext& ctx, const Tensor& grad, int axis, const Tensor& index,
           Tensor& out) {
  const View v = Look(out.shape(), axis);
  HEDDLE_RETURN_IF_ERROR(CheckIndices(index, v.range, "Index"));
  if (grad.numel() != v.outer * index.numel() * v.inner || grad.dtype() != out.dtype())
    return InvalidArgument(Name(grad.dtype()), " ", grad.shape().ToString(), " does not fit ",
                           index.numel(), " items of ", Name(out.dtype()), " ",
                           out.shape().ToString());
  return ScatterAddRows(ctx, grad.raw(), index, v.range, v.outer, v.inner, out.dtype(),
                        out.mutable_raw());
}

Status SelectShape(ShapeContext& ctx) {
  Shape out = ctx.InShape("X");
  const Shape& index = ctx.InShape("Index");
  if (!out.known_rank() || !index.known_rank()) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const int axis, Axis(ctx, "dim", out));
  if (index.rank() > 2 || (index.rank() == 2 && index[1] != 1 && index[1] >= 0))
    return InvalidArgument("'Index' must have the shape [n], not ", index.ToString());
  HEDDLE_RETURN_IF_ERROR(CheckIntDType(ctx.InDType("Index"), "Index"));
  out[axis] = index.rank() == 0 ? 1 : index[0];
  ctx.SetOut("Out", out, ctx.InDType("X"));
  return Status::Ok();
}

Status Select(KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  HEDDLE_ASSIGN_OR_RETURN(const int axis, Axis(ctx, "dim", x.shape()));
  return Take(ctx, x, axis, ctx.In("Index"), ctx.Out("Out"));
}

Status SelectGrad(KernelContext& ctx) {
  Tensor& out = ctx.Out("X@GRAD");
  HEDDLE_ASSIGN_OR_RETURN(const int axis, Axis(ctx, "dim", out.shape()));
  ZeroBytes(ctx, out.mutable_raw(), out.bytes());
  return Add(ctx, ctx.In("Out@GRAD"), axis, ctx.In("Index"), out);
}

Status IndexAdd(KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  Tensor& out = ctx.Out("Out");
  HEDDLE_ASSIGN_OR_RETURN(const int axis, Axis(ctx, "axis", x.shape()));
  Tensor kept_index, kept_value;
  const Tensor& index = Apart(ctx, ctx.In("Index"), out, &kept_index);
  const Tensor& value = Apart(ctx, ctx.In("AddValue"), out, &kept_value);
  CopyBytes(ctx, x.raw(), out.mutable_raw(), out.bytes());
  return Add(ctx, value, axis, index, out);
}

Status IndexAddGradShape(ShapeContext& ctx) {
  if (ctx.HasOut("X@GRAD")) ctx.SetOut("X@GRAD", ctx.InShape("Out@GRAD"), ctx.InDType("Out@GRAD"));
  if (ctx.HasOut("AddValue@GRAD"))
    ctx.SetOut("AddValue@GRAD", ctx.InShape("AddValue"), ctx.InDType("Out@GRAD"));
  return Status::Ok();
}

Status IndexAddGrad(KernelContext& ctx) {
  const Tensor& grad = ctx.In("Out@GRAD");
  HEDDLE_ASSIGN_OR_RETURN(const int axis, Axis(ctx, "axis", grad.shape()));
  if (Tensor* to = ctx.OutOpt("X@GRAD")) CopyBytes(ctx, grad.raw(), to->mutable_raw(), to->bytes());
  Tensor* to = ctx.OutOpt("AddValue@GRAD");
  return to == nullptr ? Status::Ok() : Take(ctx, grad, axis, ctx.In("Index"), *to);
}

// How often item i is repeated; `n` items, `total` results.
struct Counts {
  const Tensor* each = nullptr;  // nullptr: `all` times every one
  int64_t all = 0, total = 0;
};

Status ReadCounts(const OpContext& ctx, int64_t n, const Tensor* each, Counts* counts) {
  counts->each = each;
  counts->all = ctx.Int("Repeats");
  counts->total = n * counts->all;
  if (each == nullptr)
    return counts->all >= 0 ? Status::Ok()
                            : InvalidArgument("'Repeats' is ", counts->all, "; expected 0 or more");
  HEDDLE_RETURN_IF_ERROR(CheckIntDType(each->dtype(), "RepeatsTensor"));
  if (each->numel() == 1) {
    counts->all = IntAt(*each, 0);
    counts->each = nullptr;
    counts->total = n * counts->all;
    return counts->all >= 0 ? Status::Ok() : InvalidArgument("'RepeatsTensor' is negative");
  }
  if (each->numel() != n)
    return InvalidArgument("'RepeatsTensor' has ", each->numel(), " values for ", n, " items");
  counts->total = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (IntAt(*each, i) < 0) return InvalidArgument("'RepeatsTensor' holds a negative value");
    counts->total += IntAt(*each, i);
  }
  return Status::Ok();
}

Status RepeatShape(ShapeContext& ctx) {
  Shape out = ctx.InShape("X");
  if (!out.known_rank()) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const int axis, Axis(ctx, "dim", out));
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

// For every result the item it repeats.
Result<Tensor> Sources(const KernelContext& ctx, int64_t n) {
  Counts counts;
  HEDDLE_RETURN_IF_ERROR(ReadCounts(ctx, n, ctx.InOpt("RepeatsTensor"), &counts));
  Tensor index = ctx.Scratch(DType::kI64, Shape{counts.total});
  int64_t* at = index.mutable_data<int64_t>();
  for (int64_t i = 0; i < n; ++i) {
    const int64_t times = counts.each != nullptr ? IntAt(*counts.each, i) : counts.all;
    for (int64_t k = 0; k < times; ++k) *at++ = i;
  }
  return index;
}

Status Repeat(KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  HEDDLE_ASSIGN_OR_RETURN(const int axis, Axis(ctx, "dim", x.shape()));
  HEDDLE_ASSIGN_OR_RETURN(const Tensor index, Sources(ctx, x.dim(axis)));
  return Take(ctx, x, axis, index, ctx.Out("Out"));
}

Status RepeatGrad(KernelContext& ctx) {
  Tensor& out = ctx.Out("X@GRAD");
  HEDDLE_ASSIGN_OR_RETURN(const int axis, Axis(ctx, "dim", out.shape()));
  HEDDLE_ASSIGN_OR_RETURN(const Tensor index, Sources(ctx, out.dim(axis)));
  ZeroBytes(ctx, out.mutable_raw(), out.bytes());
  return Add(ctx, ctx.In("Out@GRAD"), axis, index, out);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(index_select) {
  op.Doc("Items of X along `dim` named by Index.")
      .Input("X")
      .Input("Index")
      .Output("Out")
      .Attr("dim", 0)
      .InferShape(SelectShape)
      .AnyKernel(Select);
}
HEDDLE_OP(index_select_grad) {
  op.Input("Out@GRAD")
      .Input("X", kNoBuffer)
      .Input("Index")
      .Output("X@GRAD")
      .Attr("dim", 0)
      .InferShape(GradLikeInputs)
      .AnyKernel(SelectGrad);
}
HEDDLE_OP(index_add) {
  op.Doc("X with AddValue added to the items along `axis` named by Index.")
      .Input("X")
      .Input("Index")
      .Input("AddValue")
      .Output("Out")
      .Attr("axis", 0)
      .Inplace("X", "Out")
      .InferShape(SameShape)
      .AnyKernel(IndexAdd);
}
HEDDLE_OP(index_add_grad) {
  op.Input("Out@GRAD")
      .Input("Index")
      .Input("AddValue", kNoBuffer | kOptional)
      .Output("X@GRAD", kOptional)
      .Output("AddValue@GRAD", kOptional)
      .Attr("axis", 0)
      .InferShape(IndexAddGradShape)
      .AnyKernel(IndexAddGrad);
}
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

HEDDLE_EXAMPLES(index_select, R"(
example float32 3x4, dim 1
attr dim INT 1
in Index int32 [3] 0 1 1
in X float32 [3, 4] 1 4 8 8 1 2 10 12 5 9 10 12
out Out float32 [3, 3] 1 4 4 1 2 2 5 9 9

example float32 1x1x5, dim 2
attr dim INT 2
in Index int64 [2] 4 3
in X float32 [1, 1, 5] -0.537 -0.259 -0.12 -0.676 -0.398
out Out float32 [1, 1, 2] -0.398 -0.676

example float64 12
in Index int64 [6] 0*5 1
in X float64 [12] 1*4 5 5 7 8 4 5 7 8
out Out float64 [6] 1*6

example float32 12
in Index int64 [6] 9 11 0 8 10 1
in X float32 [12] 0 3 7 11 0 8 9 11 0 2 3 6
out Out float32 [6] 2 6 0 0 3 3

example complex64 3x4, dim 1
attr dim INT 1
in Index int32 [3] 0 1 1
in X complex64 [3, 4] 1+0.8j 4+0.3j 8+0.5j 8-0.7j 1-0.8j 2+0.6j 10-0.3j 12+0.1j 5-0.5j 9+0.1j
  10-0.2j 12+0.4j
out Out complex64 [3, 3] 1+0.8j 4+0.3j 4+0.3j 1-0.8j 2+0.6j 2+0.6j 5-0.5j 9+0.1j 9+0.1j

example bfloat16 3x4, dim 1
attr dim INT 1
in Index int32 [3] 0 1 1
in X bfloat16 [3, 4] 1 4 8 8 1 2 1e+01 12 5 9 1e+01 12
out Out bfloat16 [3, 3] 1 4 4 1 2 2 5 9 9
)")

HEDDLE_EXAMPLES(index_select_grad, R"(
example float64 1x1x5, dim 2
attr dim INT 2
in Index int64 [2] 4 3
in Out@GRAD float64 [1, 1, 2] 0.2 0.4
in X float64 [1, 1, 5] -0.676 -0.398 -0.259 -0.12 -0.537
out X@GRAD float64 [1, 1, 5] 0 0 0 0.4 0.2

example float64 2x4x3, dim 1
attr dim INT 1
in Index int64 [2] 0 0
in Out@GRAD float64 [2, 2, 3] 0.3 0.9 -0.2 0.3 0.4 -0.7 -0.5 -0.5 -0.1 0.7 0.5 -0.2
in X float64 [2, 4, 3] 0.24 0.92 0.16 0.28 0.96 0.84 0.12 0.72 0.76 0.68 0.6 0.44 0.64 0.2 0.48 0.52
  0.4 0.36 0.56 0.88 0.08 0.04 0.32 0.8
out X@GRAD float64 [2, 4, 3] 0.6 1.3 -0.8999999999999999 0*9 0.19999999999999996 0
  -0.30000000000000004 0*9

example float32 1x1x5, dim 2
attr dim INT 2
in Index int64 [2] 4 3
in Out@GRAD float32 [1, 1, 2] 0.2 0.4
in X float32 [1, 1, 5] -0.676 -0.398 -0.259 -0.12 -0.537
out X@GRAD float32 [1, 1, 5] 0 0 0 0.4 0.2
)")

HEDDLE_EXAMPLES(index_add, R"(
example float32 10
in AddValue float32 [4] 0.724 0.56 0.806 0.642
in Index int32 [4] 6 1 0 8
in X float32 [10] 0.352 0.652 0.577 0.277 0.502 0.877 0.202 0.802 0.727 0.427
out Out float32 [10] 1.158 1.212 0.577 0.277 0.502 0.877 0.926 0.802 1.369 0.427

example float64 3x4
in AddValue float64 [3, 4] 0.533 0.913 0.23 0.609 0.761 0.837 0.079 0.458 0.306 0.685 0.382 0.154
in Index int64 [3] 1 1 1
in X float64 [2, 4] 0.114 0.446 0.778 0.557 0.225 0.889 0.336 0.668
out Out float64 [2, 4] 0.114 0.446 0.778 0.557 1.8250000000000002 3.3240000000000003
  1.0270000000000001 1.889

example float16 10
in AddValue float16 [4] 0.724 0.56 0.806 0.642
in Index int32 [4] 6 1 0 8
in X float16 [10] 0.352 0.652 0.577 0.277 0.502 0.877 0.202 0.802 0.727 0.427
out Out float16 [10] 1.158 1.212 0.577 0.277 0.502 0.877 0.926 0.802 1.369 0.427
)")

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

HEDDLE_EXAMPLES(index_add_grad, R"(
example float32
attr axis INT 0
in Index int64 [3] 2 0 2
in AddValue float32 [3, 2] -0.62 -0.99 0.76 0.76 0.16 -0.8
in Out@GRAD float32 [3, 2] 0.02 -0.02 -0.02 0.51 0.85 -0.33
out X@GRAD float32 [3, 2] 0.02 -0.02 -0.02 0.51 0.85 -0.33
out AddValue@GRAD float32 [3, 2] 0.85 -0.33 0.02 -0.02 0.85 -0.33

example float32, axis 1
attr axis INT 1
in Index int32 [2] 1 0
in AddValue float32 [2, 2] 0.23 0.99 0.57 0.73
in Out@GRAD float32 [2, 3] 0.89 -0.13 -0.81 0.5 0.61 -0.32
out X@GRAD float32 [2, 3] 0.89 -0.13 -0.81 0.5 0.61 -0.32
out AddValue@GRAD float32 [2, 2] -0.13 0.89 0.61 0.5

example float64
attr axis INT 0
in Index int64 [3] 2 0 2
in AddValue float64 [3, 2] -0.46 -0.36 -0.86 -0.07 0.88 0.14
in Out@GRAD float64 [3, 2] 0.99 0.68 -0.16 0.63 0.92 0.61
out X@GRAD float64 [3, 2] 0.99 0.68 -0.16 0.63 0.92 0.61
out AddValue@GRAD float64 [3, 2] 0.92 0.61 0.99 0.68 0.92 0.61

example float64, axis 1
attr axis INT 1
in Index int32 [2] 1 0
in AddValue float64 [2, 2] 0.52 -0.74 0.1 -0.82
in Out@GRAD float64 [2, 3] 0.88 -0.13 -0.43 0.56 -0.78 0.98
out X@GRAD float64 [2, 3] 0.88 -0.13 -0.43 0.56 -0.78 0.98
out AddValue@GRAD float64 [2, 2] -0.13 0.88 -0.78 0.56
)")
