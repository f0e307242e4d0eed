#include "core/interrupts.h"
#include "core/shapes.h"
#include "kernels/index/index_args.h"
#include "kernels/strided/strided_copy.h"

namespace heddle {
namespace {

Status MultiplexShape(ShapeContext& ctx) {
  if (ctx.InCount("X") == 0) return InvalidArgument("'X' names no tensor");
  const Shape& x = ctx.InShape("X");
  const Shape& ids = ctx.InShape("Ids");
  if (x.known_rank() && x.rank() < 1) return InvalidArgument("'X' must have rows");
  HEDDLE_RETURN_IF_ERROR(CheckIntDType(ctx.InDType("Ids"), "Ids"));
  Shape out = x;
  if (x.known_rank() && ids.known_rank() && ids.rank() > 0) out[0] = ids[0];
  ctx.SetOut("Out", out, ctx.InDType("X"));
  return Status::Ok();
}

// Bytes of a row and the tensor each row comes from, checked.
Status CheckIds(const Tensor& ids, int64_t rows, int count) {
  if (ids.numel() != rows)
    return InvalidArgument("'Ids' has ", ids.numel(), " values for ", rows, " rows");
  for (const int64_t i : Watched(rows))
    if (IntAt(ids, i) < 0 || IntAt(ids, i) >= count)
      return OutOfRange("'Ids' holds ", IntAt(ids, i), " at position ", i, "; expected 0 to ",
                        count - 1);
  return Status::Ok();
}

int64_t RowBytes(const Tensor& t) {
  return t.shape().Product(1, t.rank()) * static_cast<int64_t>(SizeOf(t.dtype()));
}

Status Multiplex(KernelContext& ctx) {
  Tensor& out = ctx.Out("Out");
  const Tensor& ids = ctx.In("Ids");
  const int64_t rows = out.dim(0), row = RowBytes(out);
  HEDDLE_RETURN_IF_ERROR(CheckIds(ids, rows, ctx.InCount("X")));
  auto* dst = static_cast<std::byte*>(out.mutable_raw());
  for (const int64_t i : Watched(rows)) {
    const int k = static_cast<int>(IntAt(ids, i));
    const Tensor& x = ctx.In("X", k);
    if (x.rank() == 0 || x.dim(0) <= i || RowBytes(x) != row)
      return InvalidArgument("'X' [", k, "] of shape ", x.shape().ToString(), " has no row ", i,
                             " like those of 'X' [0]");
    CopyRow(dst + i * row, static_cast<const std::byte*>(x.raw()) + i * row, row);
  }
  return Status::Ok();
}

Status MultiplexGrad(KernelContext& ctx) {
  const Tensor& grad = ctx.In("Out@GRAD");
  const Tensor& ids = ctx.In("Ids");
  const int count = ctx.OutCount("X@GRAD");
  if (grad.rank() == 0) return InvalidArgument("'Out@GRAD' must have rows");
  HEDDLE_RETURN_IF_ERROR(CheckIds(ids, grad.dim(0), count));
  const int64_t row = RowBytes(grad);
  for (int k = 0; k < count; ++k) {
    if (!ctx.HasOut("X@GRAD", k)) continue;
    Tensor& out = ctx.Out("X@GRAD", k);
    ZeroBytes(ctx, out.mutable_raw(), out.bytes());
    auto* dst = static_cast<std::byte*>(out.mutable_raw());
    for (const int64_t i : Watched(grad.dim(0))) {
      if (IntAt(ids, i) != k) continue;
      if (out.rank() == 0 || i >= out.dim(0) || RowBytes(out) != row)
        return InvalidArgument("'X' [", k, "] does not fit 'Out@GRAD' ", grad.shape().ToString());
      CopyRow(dst + i * row, static_cast<const std::byte*>(grad.raw()) + i * row, row);
    }
  }
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(multiplex) {
  op.Doc("Row i of the tensor of X that Ids names for it.")
      .Input("X", kList)
      .Input("Ids")
      .Output("Out")
      .InferShape(MultiplexShape)
      .AnyKernel(Multiplex);
}
HEDDLE_OP(multiplex_grad) {
  op.Input("Out@GRAD")
      .Input("Ids")
      .Input("X", kList | kNoBuffer | kOptional)
      .Output("X@GRAD", kList)
      .InferShape(GradLikeInputs)
      .AnyKernel(MultiplexGrad);
}

HEDDLE_EXAMPLES(multiplex, R"(
example complex64 4x3
in Ids int32 [4, 1] 1 2 0 3
in X complex64 [4, 3] 0.6-0.4j -1.5-1.3j 1.8+1j -0.1-1.7j 1.5+1.5j -1.2+1.8j -1.8+1.7j -0.4-0.3j
  -1.1-1.9j 1.4+1.9j -1.2-0.6j 1+0.8j
in X complex64 [4, 3] -0.6+0.8j -1.9-0.4j 1.4+1.5j 0.6-1.3j 1.1-0.3j 0.2-1.9j 1.5+0.8j 1.6-0.1j
  -2-1.5j -1.7+1.6j -1+1.7j -1.5-1.7j
in X complex64 [4, 3] -1.8-0.7j -0.2-1.1j 0.4+0.1j -0.8+0.3j 0.7-0.2j -1.2-0.7j 0.1+0.2j 0.3+1.5j
  -0.2+1.4j -1.4-1.6j -1.1-0.7j -1.5-0.4j
in X complex64 [4, 3] 0.7-1j 0.8+0.9j -0.2-1.2j -0.3+0.2j 1.2-1.1j 0.2-0.3j 1.7+1.2j -1.8-0.8j
  -0.5+0.5j 1.9-0.2j 0.8+1.7j 1.6+0.6j
out Out complex64 [4, 3] -0.6+0.8j -1.9-0.4j 1.4+1.5j -0.8+0.3j 0.7-0.2j -1.2-0.7j -1.8+1.7j
  -0.4-0.3j -1.1-1.9j 1.9-0.2j 0.8+1.7j 1.6+0.6j

example complex128 4x3
in Ids int32 [4, 1] 3 0 1 2
in X complex128 [4, 3] 0.8+0.6j 1.5-1.5j 0.9-0.9j -1.1+1.8j 1.5-0.7j -1.2-0.2j 1+1.3j -0.3-1.2j
  -1.4-0.1j 0.8+0.1j 0.6+1.3j 0.2-0.6j
in X complex128 [4, 3] 1.3+1j -1.3+0.6j -1.4-1.9j 0.9-1j 1.1+1.8j 0.3+1.3j -1.7-1.1j -0.7+1.3j
  0.7+0.5j -1.4-1.9j -0.6-1.1j -0.5-1.7j
in X complex128 [4, 3] -1.9+0j 1.3-0.2j -0.7+1.6j 0.9+0.2j -1.4-0.4j -1.8+0.8j 1.9+0.8j 0.5-1.7j
  1-0.1j -1.8-1.8j -0.9-1.3j 0.7-0.1j
in X complex128 [4, 3] 0.4+0.5j -0.4-0.8j 1.5-0.9j 1+0.3j -1.9+0.7j -0.9+0.3j -1.8+0.9j 0.3-0.9j
  1.7-0.3j 0.2-1.5j -1.9+1.7j -1.6-1.8j
out Out complex128 [4, 3] 0.4+0.5j -0.4-0.8j 1.5-0.9j -1.1+1.8j 1.5-0.7j -1.2-0.2j -1.7-1.1j
  -0.7+1.3j 0.7+0.5j -1.8-1.8j -0.9-1.3j 0.7-0.1j
)")

HEDDLE_EXAMPLES(multiplex_grad, R"(
example complex64 4x3
in Ids int32 [4, 1] 1 3 2 0
in Out@GRAD complex64 [4, 3] 0.083333336+0j*12
in X complex64 [4, 3] 0.6-0.4j -1.5-1.3j 1.8+1j -0.1-1.7j 1.5+1.5j -1.2+1.8j -1.8+1.7j -0.4-0.3j
  -1.1-1.9j 1.4+1.9j -1.2-0.6j 1+0.8j
in X complex64 [4, 3] -0.6+0.8j -1.9-0.4j 1.4+1.5j 0.6-1.3j 1.1-0.3j 0.2-1.9j 1.5+0.8j 1.6-0.1j
  -2-1.5j -1.7+1.6j -1+1.7j -1.5-1.7j
in X complex64 [4, 3] -1.8-0.7j -0.2-1.1j 0.4+0.1j -0.8+0.3j 0.7-0.2j -1.2-0.7j 0.1+0.2j 0.3+1.5j
  -0.2+1.4j -1.4-1.6j -1.1-0.7j -1.5-0.4j
in X complex64 [4, 3] 0.7-1j 0.8+0.9j -0.2-1.2j -0.3+0.2j 1.2-1.1j 0.2-0.3j 1.7+1.2j -1.8-0.8j
  -0.5+0.5j 1.9-0.2j 0.8+1.7j 1.6+0.6j
out X@GRAD complex64 [4, 3] 0+0j*9 0.083333336+0j 0.083333336+0j 0.083333336+0j
out X@GRAD complex64 [4, 3] 0.083333336+0j 0.083333336+0j 0.083333336+0j 0+0j*9
out X@GRAD complex64 [4, 3] 0+0j*6 0.083333336+0j 0.083333336+0j 0.083333336+0j 0+0j 0+0j 0+0j
out X@GRAD complex64 [4, 3] 0+0j 0+0j 0+0j 0.083333336+0j 0.083333336+0j 0.083333336+0j 0+0j*6
)")
