// sequence_reshape: packed sequences with another row width.
#include "core/memory/watched_bytes.h"
#include "kernels/base/shape_checks.h"
#include "kernels/sequence/sequence.h"

namespace heddle {
namespace {

Status Reshape(KernelContext& ctx) {
  const Tensor x = ctx.In("X");
  HEDDLE_ASSIGN_OR_RETURN(const Offsets* const offsets, OffsetsOf(x, "X"));
  const int64_t width = RowSize(x), dim = ctx.Int("new_dim");
  if (x.rank() != 2 || dim <= 0)
    return InvalidArgument("X must be [N, M] and new_dim positive, not ", x.shape().ToString(),
                           " and ", dim);
  Offsets made{0};
  for (size_t i = 1; i < offsets->size(); ++i) {
    const int64_t elements = static_cast<int64_t>((*offsets)[i]) * width;
    if (elements % dim != 0)
      return InvalidArgument("sequence ", i - 1, " cannot be cut into rows of ", dim);
    made.push_back(static_cast<size_t>(elements / dim));
  }
  Tensor& out = ctx.Alloc("Out", x.dtype(), Shape{x.numel() / dim, dim});
  if (x.bytes() > 0) WatchedMemcpy(out.mutable_raw(), x.raw(), x.bytes());
  out.set_lod({std::move(made)});
  return Status::Ok();
}

Status ReshapeGrad(KernelContext& ctx) {
  const Tensor& dout = ctx.In("Out@GRAD");
  Tensor& dx = ctx.Out("X@GRAD");
  if (dout.bytes() != dx.bytes())
    return InvalidArgument("Out@GRAD ", dout.shape().ToString(), " does not fit X ",
                           dx.shape().ToString());
  if (dx.bytes() > 0) WatchedMemcpy(dx.mutable_raw(), dout.raw(), dx.bytes());
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(sequence_reshape) {
  op.Doc("sequences of other row lengths over the same values")
      .Input("X")
      .Output("Out")
      .Attr("new_dim", 1)
      .AnyKernel(Reshape);
}

HEDDLE_OP(sequence_reshape_grad) {
  op.Input("X", kNoBuffer)
      .Input("Out@GRAD")
      .Output("X@GRAD")
      .Attr("new_dim", 1)
      .InferShape(SequenceGradLikeX)
      .AnyKernel(ReshapeGrad);
}
