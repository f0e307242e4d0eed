#include "core/interrupts.h"
#include "core/shapes.h"
#include "kernels/base/index_args.h"
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

// Without X, whose tensors have the shape of Out, that of its gradient.
Status MultiplexGradShape(ShapeContext& ctx) {
  if (ctx.InCount("X") > 0) return GradLikeInputs(ctx);
  for (int k = 0, count = ctx.OutCount("X@GRAD"); k < count; ++k)
    if (ctx.HasOut("X@GRAD", k))
      ctx.SetOut("X@GRAD", ctx.InShape("Out@GRAD"), ctx.InDType("Out@GRAD"), k);
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
      .InferShape(MultiplexGradShape)
      .AnyKernel(MultiplexGrad);
}
