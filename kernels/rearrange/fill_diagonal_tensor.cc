// fill_diagonal_tensor: X with a diagonal of two axes replaced by Y.
#include "core/shapes.h"
#include "kernels/strided/index_diagonal.h"

namespace heddle {
namespace {

// --- fill_diagonal_tensor ---

Result<Diagonal> FilledOf(const OpContext& ctx, const Shape& x) {
  return MakeDiagonal(x, ctx.Int("dim1"), ctx.Int("dim2"), ctx.Int("offset"));
}

Status FillTensor(KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  const Tensor& y = ctx.In("Y");
  Tensor& out = ctx.Out("Out");
  HEDDLE_ASSIGN_OR_RETURN(const Diagonal d, FilledOf(ctx, x.shape()));
  const Shape expected = DiagonalShape(x.shape(), d);
  if (y.numel() != expected.numel() || y.dtype() != x.dtype())
    return InvalidArgument("'Y' (", Name(y.dtype()), " ", y.shape().ToString(),
                           ") does not fit the diagonal of 'X' (", Name(x.dtype()), " ",
                           expected.ToString(), ")");
  CopyBytes(ctx, x.raw(), out.mutable_raw(), out.bytes());
  DiagonalCopy(x.shape(), d, SizeOf(x.dtype()), false).Run(ctx, y.raw(), out.mutable_raw());
  return Status::Ok();
}

Status FillTensorGrad(KernelContext& ctx) {
  const Tensor& grad = ctx.In("Out@GRAD");
  Tensor& out = ctx.Out("X@GRAD");
  HEDDLE_ASSIGN_OR_RETURN(const Diagonal d, FilledOf(ctx, grad.shape()));
  Tensor zeros = ctx.Scratch(grad.dtype(), DiagonalShape(grad.shape(), d));
  ZeroBytes(ctx, zeros.mutable_raw(), zeros.bytes());
  CopyBytes(ctx, grad.raw(), out.mutable_raw(), out.bytes());
  DiagonalCopy(grad.shape(), d, SizeOf(grad.dtype()), false)
      .Run(ctx, zeros.raw(), out.mutable_raw());
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(fill_diagonal_tensor) {
  op.Doc("X with a diagonal of dim1 and dim2 replaced by Y.")
      .Input("X")
      .Input("Y")
      .Output("Out")
      .Attr("offset", 0)
      .Attr("dim1", 0)
      .Attr("dim2", 1)
      .Inplace("X", "Out")
      .InferShape(SameShape)
      .AnyKernel(FillTensor);
}

HEDDLE_OP(fill_diagonal_tensor_grad) {
  op.Input("Out@GRAD")
      .Output("X@GRAD")
      .Attr("offset", 0)
      .Attr("dim1", 0)
      .Attr("dim2", 1)
      .Inplace("Out@GRAD", "X@GRAD")
      .InferShape(SameShape)
      .AnyKernel(FillTensorGrad);
}
