// Values from rank to rank: send_v2 and recv_v2, p_send and p_recv, and the same for stretches of a
// tensor, partial_send and partial_recv. What is sent is kept until it is received.
#include <cstring>

#include "core/memory/watched_bytes.h"
#include "core/shapes.h"
#include "kernels/base/shape_arg.h"
#include "kernels/collective/collective.h"

namespace heddle {
namespace {

Status NoShapes(ShapeContext&) { return Status::Ok(); }

Status SendTensor(KernelContext& ctx, const Tensor& x) {
  return WithRanks(ctx, [&](Communicator& ranks, const RankCall& call) {
    return ranks.Send(call, ctx.Int("peer"), x);
  });
}
Status Send(KernelContext& ctx) { return SendTensor(ctx, ctx.In(OperandOf(ctx))); }

// Of `num` equal stretches of n elements, the one with the number `id`.
Status CheckStretch(const OpContext& ctx, int64_t n) {
  const int64_t num = ctx.Int("num"), id = ctx.Int("id");
  if (num > 0 && id >= 0 && id < num && n % num == 0) return Status::Ok();
  return InvalidArgument("stretch ", id, " of ", num, " of ", n,
                         " elements: they cannot be cut so");
}

Status SendPart(KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  HEDDLE_RETURN_IF_ERROR(CheckStretch(ctx, x.numel()));
  return SendTensor(ctx, CopyStretch(ctx, x, ctx.Int("num"), ctx.Int("id")));
}

// The shape that the file names; unknown where it names none or the sender decides it.
Result<Shape> WantedShape(const OpContext& ctx) {
  const Ints& dims = ctx.IntList("out_shape");
  if (dims.empty() || ctx.Bool("dynamic_shape")) return Shape::Unknown();
  if (dims.size() <= static_cast<size_t>(Shape::kMaxRank)) return Shape(dims);
  return InvalidArgument("out_shape has ", dims.size(), " dimensions; at most ", Shape::kMaxRank,
                         " are possible");
}

Status CheckReceived(const Tensor& t, DType dtype, const Shape& shape) {
  bool fits = t.dtype() == dtype && (!shape.known_rank() || shape.rank() == t.shape().rank());
  for (int i = 0; fits && shape.known_rank() && i < shape.rank(); ++i)
    fits = shape[i] < 0 || shape[i] == t.shape()[i];
  if (fits) return Status::Ok();
  return InvalidArgument("expects ", Name(dtype), " ",
                         shape.known_rank() ? shape.ToString() : "of any shape", " and was sent ",
                         Name(t.dtype()), " ", t.shape().ToString());
}

Status Receive(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, WantedShape(ctx));
  HEDDLE_ASSIGN_OR_RETURN(const DType dtype, CheckedDType(ctx.Int("dtype")));
  return WithRanks(ctx, [&](Communicator& ranks, const RankCall& call) {
    HEDDLE_ASSIGN_OR_RETURN(const Tensor t, ranks.Receive(call, ctx.Int("peer")));
    HEDDLE_RETURN_IF_ERROR(CheckReceived(t, dtype, shape));
    CopyWhole(ctx, t, &ctx.Alloc(ResultOf(ctx), t.dtype(), t.shape()));
    return Status::Ok();
  });
}

Status StretchedShape(ShapeContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, CheckedShape(ctx.IntList("out_shape"), "out_shape"));
  HEDDLE_ASSIGN_OR_RETURN(const DType dtype, CheckedDType(ctx.Int("dtype")));
  HEDDLE_RETURN_IF_ERROR(CheckStretch(ctx, shape.numel()));
  ctx.SetOut("Out", shape, dtype);
  return Status::Ok();
}

// Nothing is known of the other stretches: they hold zeros.
Status ReceivePart(KernelContext& ctx) {
  Tensor& out = ctx.Out("Out");
  return WithRanks(ctx, [&](Communicator& ranks, const RankCall& call) {
    HEDDLE_ASSIGN_OR_RETURN(const Tensor t, ranks.Receive(call, ctx.Int("peer")));
    HEDDLE_RETURN_IF_ERROR(CheckReceived(t, out.dtype(), Shape({out.numel() / ctx.Int("num")})));
    if (out.bytes() == 0) return Status::Ok();
    auto* to = static_cast<std::byte*>(out.mutable_raw());
    WatchedMemset(to, 0, out.bytes());
    WatchedMemcpy(to + t.bytes() * static_cast<size_t>(ctx.Int("id")), t.raw(), t.bytes());
    return Status::Ok();
  });
}

void DefineSend(OpDef& op, const char* doc, KernelFn kernel) {
  op.Doc(doc).Attr("ring_id", 0).Attr("peer", 0);
  op.Traits(kCommunication).InferShape(NoShapes).AnyKernel(kernel);
}
void DefineReceive(OpDef& op, const char* doc, const char* out, KernelFn kernel) {
  op.Doc(doc).Output(out).Attr("ring_id", 0).Attr("peer", 0).Attr("dtype", 5);
  op.Attr("out_shape", Ints{}).Traits(kCommunication).AnyKernel(kernel);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(send_v2) {
  op.Input("X").Attr("use_calc_stream", false).Attr("dynamic_shape", false);
  DefineSend(op, "Sends X to rank peer.", Send);
}
HEDDLE_OP(p_send) {
  op.Input("x").Attr("dynamic_shape", false);
  DefineSend(op, "Sends x to rank peer.", Send);
}
HEDDLE_OP(partial_send) {
  op.Input("X").Attr("use_calc_stream", false).Attr("num", 1).Attr("id", 0);
  DefineSend(op, "Sends the id-th of num equal stretches of X to rank peer.", SendPart);
}
HEDDLE_OP(recv_v2) {
  DefineReceive(op, "What rank peer has sent.", "Out", Receive);
  op.Attr("use_calc_stream", false).Attr("dynamic_shape", false);
}
HEDDLE_OP(p_recv) {
  DefineReceive(op, "What rank peer has sent.", "out", Receive);
  op.Attr("dynamic_shape", false);
}
HEDDLE_OP(partial_recv) {
  DefineReceive(op, "The id-th of num equal stretches as rank peer has sent it, zeros elsewhere.",
                "Out", ReceivePart);
  op.Attr("use_calc_stream", false).Attr("num", 1).Attr("id", 0).InferShape(StretchedShape);
}
