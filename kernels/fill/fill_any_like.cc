// Tensors of equal elements in the shape of another: fill_any_like, fill_zeros_like(2), fill_any.
#include "kernels/base/shape_arg.h"
#include "kernels/elementwise/convert.h"

namespace heddle {
namespace {

Status LikeShape(ShapeContext& ctx) {
  const int64_t proto = ctx.Int("dtype");
  DType dtype = ctx.InDType("X");
  if (proto >= 0) {
    HEDDLE_ASSIGN_OR_RETURN(dtype, CheckedDType(proto));
  }
  if (!ctx.InVar("X")->is_tensor()) return InvalidArgument("input X must be a tensor");
  ctx.SetOut("Out", ctx.InShape("X"), dtype);
  ctx.ShareLoD("X", "Out");
  return Status::Ok();
}

Status RunValue(KernelContext& ctx) {
  FillElements(ctx, ctx.Out("Out"), ctx.Float("value"));
  return Status::Ok();
}
Status RunZeros(KernelContext& ctx) {
  FillElements(ctx, ctx.Out("Out"), 0);
  return Status::Ok();
}
Status RunZeroGrad(KernelContext& ctx) {
  FillElements(ctx, ctx.Out("X@GRAD"), 0);
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(fill_any_like) {
  op.Doc("X's shape filled with `value`.").Input("X", kNoBuffer).Output("Out");
  op.Attr("value", 0.0).Attr("dtype", -1).InferShape(LikeShape).AnyKernel(RunValue);
}
HEDDLE_OP(fill_zeros_like) {
  op.Doc("Zeros in X's shape.").Input("X", kNoBuffer).Output("Out");
  op.InferShape(SameShape).AnyKernel(RunZeros);
}
HEDDLE_OP(fill_zeros_like2) {
  op.Doc("Zeros in X's shape.").Input("X", kNoBuffer).Output("Out").Attr("dtype", 5);
  op.InferShape(LikeShape).AnyKernel(RunZeros);
}
HEDDLE_OP(fill_any) {
  op.Doc("Overwrites X with `value`.").Input("X", kNoBuffer).Output("Out").Attr("value", 0.0);
  op.InferShape(SameShape).AnyKernel(RunValue);
}
HEDDLE_OP(fill_any_grad) {
  op.Input("Out@GRAD", kNoBuffer).Output("X@GRAD").Attr("value", 0.0);
  op.InferShape(SameShape).AnyKernel(RunZeroGrad);
}

HEDDLE_EXAMPLES(fill_any_like, R"(
example float32 2x3, dtype 5, value 2
attr dtype INT 5
attr value FLOAT 2.0
in X float32 [2, 3] 3 3 6 1 2 3
out Out float32 [2, 3] 2*6

example float64 4x4, dtype 6, value 1000
attr dtype INT 6
attr value FLOAT 1000.0
in X float64 [4, 4] 0.11 0.77 0.56 0.52 0.14 0.59 0.84 0.13 0.2 0.62 0.31 0.85 0.54 0.97 0.38 0.31
out Out float64 [4, 4] 1000*16

example int64 4x4, dtype 3, value 8888
attr dtype INT 3
attr value FLOAT 8888.0
in X int64 [4, 4] 0*16
out Out int64 [4, 4] 8888*16

example 20 kB between operators
# More than a plan computes before it runs.
in x float32 [50, 100] 0.5*2500 -0.25*2500
op relu X=x -> Out=a
op fill_any_like X=a -> Out=b
attr dtype INT 5
attr value FLOAT 2.5
op elementwise_mul X=a Y=b -> Out=y
out y float32 [50, 100] 1.25*2500 0*2500

example float32 2x3x1
in X float32 [2, 3, 1] 0.102908544 0.042702675 -0.069244474 0.0047163633 -0.07167311 0.087135084
out Out float32 [2, 3, 1] 0*6
)")

HEDDLE_EXAMPLES(fill_zeros_like, R"(
example int32 1x7
in X int32 [1, 7] 9 -2 -2 5 5 -7 9
out Out int32 [1, 7] 0*7

example float32 4x3
in X float32 [4, 3] 0.385 0.077 0.308 0.846 0.231 0.154 0.692 0.769 0.538 0.923 0.615 0.462
out Out float32 [4, 3] 0*12

example float32 scalar
in X float32 [] 0.684
out Out float32 [] 0

example 20 kB between operators
# More than a plan computes before it runs.
in x float32 [50, 100] 0.5*2500 -0.25*2500
op relu X=x -> Out=a
op fill_zeros_like X=a -> Out=b
op elementwise_max X=a Y=b -> Out=y
out y float32 [50, 100] 0.5*2500 0*2500
)")

HEDDLE_EXAMPLES(fill_zeros_like2, R"(
example float32 4x3
in X float32 [4, 3] 0.231 0.769 0.692 0.462 0.154 0.385 0.538 0.923 0.077 0.846 0.615 0.308
out Out float32 [4, 3] 0*12

example float64 4x3
in X float64 [4, 3] 0.231 0.769 0.692 0.462 0.154 0.385 0.538 0.923 0.077 0.846 0.615 0.308
out Out float32 [4, 3] 0*12

example int32 4x3
in X int32 [4, 3] 1 1 0 0 1 1 0 1 0 1 1 1
out Out float32 [4, 3] 0*12

example int64 4x3
in X int64 [4, 3] 1 1 0 0 1 1 0 1 0 1 1 1
out Out float32 [4, 3] 0*12

example bool 4x3
in X bool [4, 3] 0 0 0 1 1 0 1 0 1 0 1 0
out Out float32 [4, 3] 0*12

example complex64 4x3
in X complex64 [4, 3] 0.231+0.8j 0.769+0.3j 0.692+0.5j 0.462-0.7j 0.154-0.8j 0.385+0.6j 0.538-0.3j
  0.923+0.1j 0.077-0.5j 0.846+0.1j 0.615-0.2j 0.308+0.4j
out Out float32 [4, 3] 0*12

example bfloat16 4x3
in X bfloat16 [4, 3] 0.231 0.77 0.69 0.463 0.154 0.385 0.54 0.92 0.077 0.848 0.613 0.309
out Out float32 [4, 3] 0*12

example float16 4x3
in X float16 [4, 3] 0.231 0.769 0.692 0.462 0.154 0.385 0.538 0.923 0.077 0.846 0.615 0.308
out Out float32 [4, 3] 0*12
)")

HEDDLE_EXAMPLES(fill_any, R"(
example float32 4x3, value 1.11112e+08
attr value FLOAT 111111550.0
in X float32 [4, 3] 0.231 0.768 0.691 0.461 0.154 0.384 0.538 0.922 0.077 0.845 0.614 0.307
out Out float32 [4, 3] 111111550*12

example float64 4x3
in X float64 [4, 3] 0.231 0.692 0.384 0.307 0.538 0.461 0.077 0.615 0.768 0.845 0.922 0.154
out Out float64 [4, 3] 0*12

example int32 4x3, value 1.11112e+08
attr value FLOAT 111111550.0
in X int32 [4, 3] 1 1 0 0 1 1 0 1 0 1 1 1
out Out int32 [4, 3] 111111552*12

example int64 4x3, value 1.11112e+08
attr value FLOAT 111111550.0
in X int64 [4, 3] 1 1 0 0 1 1 0 1 0 1 1 1
out Out int64 [4, 3] 111111552*12

example bool 4x3, value 1.11112e+08
attr value FLOAT 111111550.0
in X bool [4, 3] 0 0 0 1 1 0 1 0 1 0 1 0
out Out bool [4, 3] 1*12

example complex64 4x3, value 1.11112e+08
attr value FLOAT 111111550.0
in X complex64 [4, 3] 0.231+0.8j 0.768+0.3j 0.691+0.5j 0.461-0.7j 0.154-0.8j 0.384+0.6j 0.538-0.3j
  0.922+0.1j 0.077-0.5j 0.845+0.1j 0.614-0.2j 0.307+0.4j
out Out complex64 [4, 3] 111111550+0j*12

example bfloat16 4x3, value 1.11112e+08
attr value FLOAT 111111550.0
in X bfloat16 [4, 3] 0.231 0.77 0.69 0.46 0.154 0.385 0.54 0.92 0.077 0.844 0.613 0.307
out Out bfloat16 [4, 3] 1.106e+08*12

example float16 4x3, value 1.11112e+08
attr value FLOAT 111111550.0
in X float16 [4, 3] 0.231 0.768 0.691 0.461 0.154 0.384 0.538 0.922 0.077 0.845 0.614 0.307
out Out float16 [4, 3] inf*12
)")

HEDDLE_EXAMPLES(fill_any_grad, R"(
example float64 4x3, value 11111.1
attr value FLOAT 11111.111
in Out@GRAD float64 [4, 3] -0.8 0.2 -0.7 -0.5 -0.3 0.7 0.3 0.1 -0.9 0.5 -0.2 0.6
out X@GRAD float64 [4, 3] 0*12

example float32 4x3, value 11111.1
attr value FLOAT 11111.111
in Out@GRAD float32 [4, 3] -0.8 0.2 -0.7 -0.5 -0.3 0.7 0.3 0.1 -0.9 0.5 -0.2 0.6
out X@GRAD float32 [4, 3] 0*12
)")
