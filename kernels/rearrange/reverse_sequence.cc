// The first steps of each sequence in reverse order.
#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/base/index_args.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

struct SequenceAxes {
  int seq = 0, batch = 0;
};
Result<SequenceAxes> SequenceAxesOf(const OpContext& ctx, const Shape& x, const Shape& lengths) {
  SequenceAxes axes;
  HEDDLE_ASSIGN_OR_RETURN(axes.seq, NormalAxis(ctx.Int("seq_axis"), x.rank()));
  HEDDLE_ASSIGN_OR_RETURN(axes.batch, NormalAxis(ctx.Int("batch_axis"), x.rank()));
  if (axes.seq != axes.batch && x.rank() > 1 &&
      (!lengths.is_static() || x[axes.batch] < 0 || lengths.numel() == x[axes.batch]))
    return axes;
  return InvalidArgument("seq_axis is ", axes.seq, ", batch_axis ", axes.batch, " and Lengths ",
                         lengths.ToString(), " for X ", x.ToString(),
                         ", expected two axes and a length for each sequence");
}

Status ReverseSequenceShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  HEDDLE_RETURN_IF_ERROR(CheckIntDType(ctx.InDType("Lengths"), "Lengths"));
  if (x.known_rank())
    HEDDLE_RETURN_IF_ERROR(SequenceAxesOf(ctx, x, ctx.InShape("Lengths")).status());
  ctx.SetOut("Out", x, ctx.InDType("X"));
  return Status::Ok();
}

Status ReverseSequence(KernelContext& ctx) {
  const Tensor &x = ctx.In("X"), &lengths = ctx.In("Lengths");
  HEDDLE_ASSIGN_OR_RETURN(const SequenceAxes axes, SequenceAxesOf(ctx, x.shape(), lengths.shape()));
  const int64_t steps = x.shape()[axes.seq];
  for (const auto part : Stretches(lengths.numel()))
    for (int64_t i = part.begin; i < part.end; ++i)
      if (const int64_t n = IntAt(lengths, i); n < 0 || n > steps)
        return OutOfRange("Lengths holds ", n, " at position ", i, ", expected 0 to ", steps);
  // Rows behind both axes move as they are.
  const int rows = std::max(axes.seq, axes.batch) + 1;
  const int64_t row = x.shape().Product(rows, x.rank()) * static_cast<int64_t>(SizeOf(x.dtype()));
  const Shape outer(x.shape().dims().first(static_cast<size_t>(rows)));
  const int64_t stride = outer.Product(axes.seq + 1, rows);
  const auto* from = static_cast<const std::byte*>(x.raw());
  auto* to = static_cast<std::byte*>(ctx.Out("Out").mutable_raw());
  Walk<1> walk(outer, {std::array<int64_t, Shape::kMaxRank>{}});
  for (const auto part : Stretches(row == 0 ? 0 : outer.numel()))
    for (int64_t i = part.begin; i < part.end; ++i, walk.Next()) {
      const int64_t t = walk.index(axes.seq), n = IntAt(lengths, walk.index(axes.batch));
      const int64_t source = i + (t < n ? n - 1 - 2 * t : 0) * stride;
      CopyRow(to + i * row, from + source * row, row);
    }
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(reverse_sequence) {
  op.Doc("the first steps of each sequence in reverse order; Lengths says how many");
  op.Input("X").Input("Lengths").Output("Out").Attr("seq_axis", 0).Attr("batch_axis", 1);
  op.InferShape(ReverseSequenceShape).KernelKey("X").AnyKernel(ReverseSequence);
}
