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

HEDDLE_EXAMPLES(sequence_expand, R"(
example float32 2x3, ref_level 0
attr ref_level INT 0
in X float32 [2, 3] -0.29 -0.5 0.52 0.11 0.32 -0.09
in Y float32 [4, 1] lod [[0, 1, 4]] 0.12 0.4 -0.17 0.69
out Out float32 [4, 3] -0.29 -0.5 0.52 0.11 0.32 -0.09 0.11 0.32 -0.09 0.11 0.32 -0.09

example float64 4x2
in X float64 [4, 2] lod [[0, 1, 2, 2, 3, 4]] 0.202 0.5 0.798 0.599 0.301 0.897 0.4 0.698
in Y float64 [8, 1] lod [[0, 0, 2, 6, 8, 8]] 0.664 0.367 0.59 0.739 0.441 0.219 0.516 0.293
out Out float64 [4, 2] lod [[0, 1, 2, 2, 2, 2, 2, 3, 4]] 0.798 0.599 0.798 0.599 0.301 0.897 0.301
  0.897

example float64 1x2x4, ref_level 0
attr ref_level INT 0
in X float64 [1, 2, 4] lod [[0, 1]] 0.4 0.599 0.202 0.5 0.698 0.798 0.897 0.301
in Y float64 [2, 2, 2] lod [[0, 2], [0, 1, 2]] 0.367 0.293 0.516 0.441 0.219 0.664 0.739 0.59
out Out float64 [2, 2, 4] lod [[0, 1, 2]] 0.4 0.599 0.202 0.5 0.698 0.798 0.897 0.301 0.4 0.599
  0.202 0.5 0.698 0.798 0.897 0.301

example float64 3x3
in X float64 [3, 3] 0.818 0.372 0.64 0.283 0.729 0.907 0.551 0.462 0.194
in Y float64 [8, 1] lod [[0, 1, 4, 8]] 0.427 0.66 0.738 0.893 0.505 0.815 0.583 0.35
out Out float64 [8, 3] 0.818 0.372 0.64 0.283 0.729 0.907 0.283 0.729 0.907 0.283 0.729 0.907 0.551
  0.462 0.194 0.551 0.462 0.194 0.551 0.462 0.194 0.551 0.462 0.194

example int32 2x3, ref_level 0
attr ref_level INT 0
in X int32 [2, 3] 0*6
in Y int32 [4, 1] lod [[0, 1, 4]] 0*4
out Out int32 [4, 3] 0*12

example int64 2x3, ref_level 0
attr ref_level INT 0
in X int64 [2, 3] 0*6
in Y int64 [4, 1] lod [[0, 1, 4]] 0*4
out Out int64 [4, 3] 0*12
)")

HEDDLE_EXAMPLES(sequence_expand_grad, R"(
example float64 4x3, ref_level 0
attr ref_level INT 0
in Out@GRAD float64 [4, 3] -0.6 0.4 -0.2 0.2 0.5 -0.6 0.1 0.2 0.1 0.6 0.1 -0.2
in X float64 [2, 3] -0.29 0.32 -0.09 0.52 -0.5 0.11
in Y float64 [4, 1] lod [[0, 1, 4]] 0.4 -0.17 0.69 0.12
out X@GRAD float64 [2, 3] -0.6 0.4 -0.2 0.9 0.7999999999999999 -0.7

example float64 2x2x4, ref_level 0
attr ref_level INT 0
in Out@GRAD float64 [2, 2, 4] lod [[0, 1, 2]] 0 -0.9 0.3 -0.7 -0.7 0.6 0 -0.2 0.2 -0 -0.3 -0.7 0.8
  -0.8 0.7 0.1
in X float64 [1, 2, 4] lod [[0, 1]] 0.408 0.604 0.212 0.506 0.702 0.8 0.898 0.31
in Y float64 [2, 2, 2] lod [[0, 2], [0, 1, 2]] 0.417 0.343 0.566 0.492 0.269 0.714 0.788 0.64
out X@GRAD float64 [1, 2, 4] lod [[0, 1]] 0.2 -0.9 0 -1.4 0.10000000000000009 -0.20000000000000007
  0.7 -0.1

example float64 4x2
in Out@GRAD float64 [4, 2] lod [[0, 1, 2, 2, 2, 2, 2, 3, 4]] -0.1 -0.4 -0.5 0.8 -0.6 0.9 -0.9 0.5
in X float64 [4, 2] lod [[0, 1, 2, 2, 3, 4]] 0.212 0.506 0.8 0.604 0.31 0.898 0.408 0.702
in Y float64 [8, 1] lod [[0, 0, 2, 6, 8, 8]] 0.714 0.417 0.64 0.788 0.492 0.269 0.566 0.343
out X@GRAD float64 [4, 2] lod [[0, 1, 2, 2, 3, 4]] 0 0 -0.6 0.4 -1.5 1.4 0 0

example float32 4x3, ref_level 0
attr ref_level INT 0
in Out@GRAD float32 [4, 3] -0.6 0.4 -0.2 0.2 0.5 -0.6 0.1 0.2 0.1 0.6 0.1 -0.2
in X float32 [2, 3] -0.29 0.32 -0.09 0.52 -0.5 0.11
in Y float32 [4, 1] lod [[0, 1, 4]] 0.4 -0.17 0.69 0.12
out X@GRAD float32 [2, 3] -0.6 0.4 -0.2 0.90000004 0.8 -0.7
)")

HEDDLE_EXAMPLES(sequence_expand_as, R"(
example float64 1x2x4
in X float64 [1, 2, 4] lod [[0, 1]] 0.4 0.798 0.698 0.301 0.599 0.897 0.202 0.5
in Y float64 [2, 2, 2] lod [[0, 2]] 0.516 0.367 0.441 0.664 0.739 0.219 0.59 0.293
out Out float64 [2, 2, 4] lod [[0, 2]] 0.4 0.798 0.698 0.301 0.599 0.897 0.202 0.5 0.4 0.798 0.698
  0.301 0.599 0.897 0.202 0.5

example float64 3x3
in X float64 [3, 3] 0.728 0.549 0.46 0.906 0.192 0.281 0.638 0.817 0.37
in Y float64 [8, 1] lod [[0, 1, 4, 8]] 0.675 0.83 0.364 0.597 0.752 0.442 0.908 0.52
out Out float64 [8, 3] lod [[0, 1, 4, 8]] 0.728 0.549 0.46 0.906 0.192 0.281 0.906 0.192 0.281 0.906
  0.192 0.281 0.638 0.817 0.37 0.638 0.817 0.37 0.638 0.817 0.37 0.638 0.817 0.37

example float32 1x2x4
in X float32 [1, 2, 4] lod [[0, 1]] 0.4 0.798 0.698 0.301 0.599 0.897 0.202 0.5
in Y float32 [2, 2, 2] lod [[0, 2]] 0.516 0.367 0.441 0.664 0.739 0.219 0.59 0.293
out Out float32 [2, 2, 4] lod [[0, 2]] 0.4 0.798 0.698 0.301 0.599 0.897 0.202 0.5 0.4 0.798 0.698
  0.301 0.599 0.897 0.202 0.5

example int32 1x2x4
in X int32 [1, 2, 4] lod [[0, 1]] 1 1 0 0 1 1 0 1
in Y int32 [2, 2, 2] lod [[0, 2]] 0 1 1 1 0 1 0 1
out Out int32 [2, 2, 4] lod [[0, 2]] 1 1 0 0 1 1 0 1 1 1 0 0 1 1 0 1

example int64 1x2x4
in X int64 [1, 2, 4] lod [[0, 1]] 1 1 0 0 1 1 0 1
in Y int64 [2, 2, 2] lod [[0, 2]] 0 1 1 1 0 1 0 1
out Out int64 [2, 2, 4] lod [[0, 2]] 1 1 0 0 1 1 0 1 1 1 0 0 1 1 0 1
)")

HEDDLE_EXAMPLES(sequence_expand_as_grad, R"(
example float64 8x3
in Out@GRAD float64 [8, 3] lod [[0, 1, 4, 8]] 0.6 -0.1 0.3 0.8 0.3 0.8 0.4 0.3 -0.8 -0.9 -0.6 -0.5
  -0.7 0.7 -0.4 0.6 -0.5 -0.1 -0.7 0.8 0.7 0.7 0.4 -0.3
in X float64 [3, 3] 0.37 0.728 0.638 0.281 0.549 0.906 0.192 0.817 0.46
in Y float64 [8, 1] lod [[0, 1, 4, 8]] 0.675 0.52 0.597 0.83 0.908 0.364 0.752 0.442
out X@GRAD float64 [3, 3] 0.6 -0.1 0.3 0.30000000000000016 0 -0.5 -0.09999999999999998 1.4
  -0.10000000000000003

example float32 8x3
in Out@GRAD float32 [8, 3] lod [[0, 1, 4, 8]] 0.6 -0.1 0.3 0.8 0.3 0.8 0.4 0.3 -0.8 -0.9 -0.6 -0.5
  -0.7 0.7 -0.4 0.6 -0.5 -0.1 -0.7 0.8 0.7 0.7 0.4 -0.3
in X float32 [3, 3] 0.37 0.728 0.638 0.281 0.549 0.906 0.192 0.817 0.46
in Y float32 [8, 1] lod [[0, 1, 4, 8]] 0.675 0.52 0.597 0.83 0.908 0.364 0.752 0.442
out X@GRAD float32 [3, 3] 0.6 -0.1 0.3 0.30000007 0 -0.5 -0.099999964 1.4 -0.100000024
)")
