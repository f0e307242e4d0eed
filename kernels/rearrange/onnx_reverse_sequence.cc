#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/base/index_args.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

Status OnnxReverseSequenceShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("input");
  if (!x.is_static() || !AllStatic(ctx, {"sequence_lens"}))
    return SameRank(ctx, "input", "Y", x.rank());
  const int64_t batch = ctx.Int("batch_axis"), time = ctx.Int("time_axis");
  if (x.rank() < 2 || batch + time != 1 || batch * time != 0)
    return InvalidArgument("batch_axis and time_axis are ", batch, " and ", time, " for input ",
                           x.ToString(), ", expected 0 and 1 of at least two dimensions");
  HEDDLE_RETURN_IF_ERROR(CheckIntDType(ctx.InDType("sequence_lens"), "sequence_lens"));
  if (ctx.InShape("sequence_lens").numel() != x[static_cast<int>(batch)])
    return InvalidArgument("sequence_lens has shape ", ctx.InShape("sequence_lens").ToString(),
                           ", expected ", x[static_cast<int>(batch)], " elements");
  ctx.SetOut("Y", x, ctx.InDType("input"));
  return Status::Ok();
}

Status OnnxReverseSequence(KernelContext& ctx) {
  const Tensor& x = ctx.In("input");
  const Tensor& lens = ctx.In("sequence_lens");
  const bool batch_first = ctx.Int("batch_axis") == 0;
  const int64_t batch = x.dim(batch_first ? 0 : 1), steps = x.dim(batch_first ? 1 : 0);
  for (int64_t b = 0; b < batch; ++b)
    if (const int64_t n = IntAt(lens, b); n < 0 || n > steps)
      return OutOfRange("sequence_lens holds ", n, ", expected 0 to ", steps);
  const int64_t row = x.shape().Product(2, x.rank()) * static_cast<int64_t>(SizeOf(x.dtype()));
  const auto* from = static_cast<const std::byte*>(x.raw());
  auto* to = static_cast<std::byte*>(ctx.Out("Y").mutable_raw());
  const auto at = [&](int64_t b, int64_t t) {
    return (batch_first ? b * steps + t : t * batch + b) * row;
  };
  for (const int64_t b : Watched(batch)) {
    const int64_t n = IntAt(lens, b);
    for (int64_t t = 0; t < steps; ++t)
      WatchedMemcpy(to + at(b, t), from + at(b, t < n ? n - 1 - t : t), static_cast<size_t>(row));
  }
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_reverse_sequence) {
  op.Doc("the first sequence_lens steps of each sequence in reverse order");
  op.Input("input").Input("sequence_lens").Output("Y");
  op.Attr("batch_axis", 1).Attr("time_axis", 0).InferShape(OnnxReverseSequenceShape);
  op.KernelKey("input").AnyKernel(OnnxReverseSequence);
}
