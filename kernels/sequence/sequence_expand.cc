// sequence_expand and sequence_expand_as: sequences repeated as another tensor's offsets say.
#include "core/interrupts.h"
#include "kernels/sequence/sequence.h"

namespace heddle {
namespace {

// The repetitions of each sequence of X, or of each row if X has no sequences.
struct Repeats {
  const Offsets* times = nullptr;  // nullptr: X is only copied
  const Offsets* own = nullptr;    // X's sequences, nullptr for rows

  int64_t count() const { return SequenceCount(*times); }
  int64_t Start(int64_t i) const { return own ? Begin(*own, i) : i; }
  int64_t Size(int64_t i) const { return own ? Length(*own, i) : 1; }
  int64_t Times(int64_t i) const { return Length(*times, i); }
  int64_t Total() const {
    int64_t total = 0;
    for (const auto part : Stretches(count()))
      for (int64_t i = part.begin; i < part.end; ++i) total += Size(i) * Times(i);
    return total;
  }
};

Result<Repeats> ReadRepeats(KernelContext& ctx, bool as) {
  const Tensor &x = ctx.In("X"), &y = ctx.In("Y");
  Repeats r;
  const int level = as ? 0 : static_cast<int>(ctx.Int("ref_level"));
  HEDDLE_ASSIGN_OR_RETURN(r.times, OffsetsOf(y, "Y", level));
  if (!as && r.times->size() <= 1) {
    r.times = nullptr;
    return r;
  }
  if (!as && x.has_lod()) {
    HEDDLE_ASSIGN_OR_RETURN(r.own, OffsetsOf(x, "X", 0));
  }
  if (r.own && x.lod().size() > 1)
    return InvalidArgument("X must have at most one level of sequences");
  const int64_t have = r.own ? SequenceCount(*r.own) : x.rank() < 1 ? 0 : x.dim(0);
  if (have != r.count())
    return InvalidArgument("X has ", have, " sequences or rows, Y asks for ", r.count());
  return r;
}

Status Expand(KernelContext& ctx, bool as) {
  const Tensor x = ctx.In("X");
  if (x.rank() < 1) return InvalidArgument("X must have at least one axis");
  HEDDLE_ASSIGN_OR_RETURN(const Repeats r, ReadRepeats(ctx, as));
  Shape shape = x.shape();
  if (r.times) shape[0] = r.Total();
  const LoD as_lod = as ? ctx.In("Y").lod() : LoD{};
  Tensor& out = ctx.Alloc("Out", x.dtype(), shape);
  if (!r.times) {
    CopyRows(x, 0, x.dim(0), out, 0);
    out.set_lod(x.lod());
    return Status::Ok();
  }
  Offsets made{0};
  int64_t at = 0;
  for (const int64_t i : Watched(r.count()))
    for (int64_t k = 0; k < r.Times(i); ++k) {
      CopyRows(x, r.Start(i), r.Size(i), out, at);
      at += r.Size(i);
      if (r.own) made.push_back(static_cast<size_t>(at));
    }
  if (as)
    out.set_lod(as_lod);
  else if (r.own)
    out.set_lod({made});
  else
    out.ClearLod();
  return Status::Ok();
}
Status RunExpand(KernelContext& ctx) { return Expand(ctx, false); }
Status RunExpandAs(KernelContext& ctx) { return Expand(ctx, true); }

template <typename T>
Status ExpandGrad(KernelContext& ctx, bool as) {
  const Tensor &x = ctx.In("X"), &dout = ctx.In("Out@GRAD");
  HEDDLE_ASSIGN_OR_RETURN(const Repeats r, ReadRepeats(ctx, as));
  Tensor& dx = ctx.Out("X@GRAD");
  const int64_t rows = r.times ? r.Total() : x.dim(0);
  if (dout.numel() != rows * RowSize(x) || dout.rank() < 1 || dout.dim(0) != rows)
    return InvalidArgument("Out@GRAD ", dout.shape().ToString(), " must have ", rows, " rows");
  if (!r.times) {
    CopyRows(dout, 0, rows, dx, 0);
    return Status::Ok();
  }
  ZeroAll(dx);
  int64_t at = 0;
  for (const int64_t i : Watched(r.count()))
    for (int64_t k = 0; k < r.Times(i); ++k, at += r.Size(i))
      AddRows<T>(dout, at, r.Size(i), dx, r.Start(i));
  return Status::Ok();
}
template <typename T>
struct SequenceExpandGrad {
  static Status Run(KernelContext& ctx) { return ExpandGrad<T>(ctx, false); }
};
template <typename T>
struct SequenceExpandAsGrad {
  static Status Run(KernelContext& ctx) { return ExpandGrad<T>(ctx, true); }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(sequence_expand) {
  op.Doc("repeats each sequence (or row) of X as often as Y's sequence is long")
      .Input("X")
      .Input("Y", kNoBuffer)
      .Output("Out")
      .Attr("ref_level", -1)
      .AnyKernel(RunExpand);
}

HEDDLE_OP(sequence_expand_grad) {
  op.Input("X", kNoBuffer)
      .Input("Y", kNoBuffer)
      .Input("Out@GRAD")
      .Output("X@GRAD")
      .Attr("ref_level", -1)
      .InferShape(SequenceGradLikeX)
      .Kernels<SequenceExpandGrad, float, double, int32_t, int64_t>();
}

HEDDLE_OP(sequence_expand_as) {
  op.Doc("repeats each row of X as often as Y's sequence is long")
      .Input("X")
      .Input("Y", kNoBuffer)
      .Output("Out")
      .AnyKernel(RunExpandAs);
}

HEDDLE_OP(sequence_expand_as_grad) {
  op.Input("X", kNoBuffer)
      .Input("Y", kNoBuffer)
      .Input("Out@GRAD")
      .Output("X@GRAD")
      .InferShape(SequenceGradLikeX)
      .Kernels<SequenceExpandAsGrad, float, double, int32_t, int64_t>();
}
