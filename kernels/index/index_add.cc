// index_add: adds items to a tensor along one axis, at a vector of indices.
#include "core/shapes.h"
#include "kernels/index/axis_items.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

Status IndexAdd(KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  Tensor& out = ctx.Out("Out");
  HEDDLE_ASSIGN_OR_RETURN(const int axis, ItemAxis(ctx, "axis", x.shape()));
  Tensor kept_index, kept_value;
  const Tensor& index = Apart(ctx, ctx.In("Index"), out, &kept_index);
  const Tensor& value = Apart(ctx, ctx.In("AddValue"), out, &kept_value);
  CopyBytes(ctx, x.raw(), out.mutable_raw(), out.bytes());
  return AddItems(ctx, value, axis, index, out);
}

Status IndexAddGradShape(ShapeContext& ctx) {
  if (ctx.HasOut("X@GRAD")) ctx.SetOut("X@GRAD", ctx.InShape("Out@GRAD"), ctx.InDType("Out@GRAD"));
  if (ctx.HasOut("AddValue@GRAD"))
    ctx.SetOut("AddValue@GRAD", ctx.InShape("AddValue"), ctx.InDType("Out@GRAD"));
  return Status::Ok();
}

Status IndexAddGrad(KernelContext& ctx) {
  const Tensor& grad = ctx.In("Out@GRAD");
  HEDDLE_ASSIGN_OR_RETURN(const int axis, ItemAxis(ctx, "axis", grad.shape()));
  if (Tensor* to = ctx.OutOpt("X@GRAD")) CopyBytes(ctx, grad.raw(), to->mutable_raw(), to->bytes());
  Tensor* to = ctx.OutOpt("AddValue@GRAD");
  return to == nullptr ? Status::Ok() : TakeItems(ctx, grad, axis, ctx.In("Index"), *to);
}

}  // namespace
}  // namespace heddle

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
