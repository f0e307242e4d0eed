// sequence_enumerate and sequence_erase: sequences of integers.
#include <algorithm>

#include "kernels/sequence/sequence.h"

namespace heddle {
namespace {

Status InferEnumerate(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  if (ctx.Int("win_size") < 1) return InvalidArgument("win_size must be positive");
  if (!x.known_rank()) return ctx.Defer();
  if (x.rank() < 1 || (x.rank() == 2 && x[1] != 1) || x.rank() > 2)
    return InvalidArgument("X must be [N] or [N, 1], not ", x.ToString());
  ctx.SetOut("Out", Shape{x[0], ctx.Int("win_size")}, ctx.InDType("X"));
  ctx.ShareLoD("X", "Out");
  return Status::Ok();
}

template <typename T>
struct Enumerate {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    HEDDLE_ASSIGN_OR_RETURN(const Offsets* const offsets, OffsetsOf(x, "X"));
    const int64_t window = ctx.Int("win_size");
    const T pad = static_cast<T>(ctx.Int("pad_value"));
    T* out = ctx.Out("Out").template mutable_data<T>();
    for (int64_t i = 0; i < SequenceCount(*offsets); ++i)
      for (int64_t t = Begin(*offsets, i), end = Begin(*offsets, i + 1); t < end; ++t)
        for (int64_t k = 0; k < window; ++k)
          out[t * window + k] = t + k < end ? x.data<T>()[t + k] : pad;
    return Status::Ok();
  }
};

template <typename T>
struct Erase {
  static Status Run(KernelContext& ctx) {
    const Tensor x = ctx.In("X");
    HEDDLE_ASSIGN_OR_RETURN(const Offsets* const offsets, OffsetsOf(x, "X"));
    const Ints& tokens = ctx.IntList("tokens");
    if (x.numel() != x.dim(0)) return InvalidArgument("X must be [N] or [N, 1]");
    std::vector<T> kept;
    Offsets made{0};
    for (int64_t i = 0; i < SequenceCount(*offsets); ++i) {
      for (int64_t t = Begin(*offsets, i); t < Begin(*offsets, i + 1); ++t) {
        const T v = x.data<T>()[t];
        if (std::find(tokens.begin(), tokens.end(), static_cast<int64_t>(v)) == tokens.end())
          kept.push_back(v);
      }
      made.push_back(kept.size());
    }
    LoD lod = x.lod();
    lod.back() = made;
    Shape shape = x.shape();
    shape[0] = static_cast<int64_t>(kept.size());
    Tensor& out = ctx.Alloc("Out", x.dtype(), shape);
    std::copy(kept.begin(), kept.end(), out.mutable_data<T>());
    out.set_lod(std::move(lod));
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(sequence_enumerate) {
  op.Doc("for each position the next win_size elements of its sequence")
      .Input("X")
      .Output("Out")
      .Attr("win_size", 1)
      .Attr("pad_value", 0)
      .InferShape(InferEnumerate)
      .Kernels<Enumerate, int32_t, int64_t>();
}

HEDDLE_OP(sequence_erase) {
  op.Doc("sequences without the given tokens")
      .Input("X")
      .Output("Out")
      .Attr("tokens", Ints{})
      .Kernels<Erase, int32_t, int64_t>();
}

HEDDLE_EXAMPLES(sequence_enumerate, R"(
example int32
attr win_size INT 2
attr pad_value INT 0
in X int32 [5, 1] lod [[0, 3, 5]] 4 5 1 4 4
out Out int32 [5, 2] lod [[0, 3, 5]] 4 5 5 1 1 0 4 4 4 0

example int64
attr win_size INT 2
attr pad_value INT 0
in X int64 [5, 1] lod [[0, 3, 5]] 1 2 8 1 5
out Out int64 [5, 2] lod [[0, 3, 5]] 1 2 2 8 8 0 1 5 5 0
)")

HEDDLE_EXAMPLES(sequence_erase, R"(
example int32
attr tokens INTS [2, 3]
in X int32 [6, 1] lod [[0, 3, 6]] 2 2 6 1 3 9
out Out int32 [3, 1] lod [[0, 1, 3]] 6 1 9

example int64
attr tokens INTS [2, 3]
in X int64 [6, 1] lod [[0, 3, 6]] 2 2 6 1 3 9
out Out int64 [3, 1] lod [[0, 1, 3]] 6 1 9
)")
