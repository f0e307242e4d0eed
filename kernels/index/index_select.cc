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
