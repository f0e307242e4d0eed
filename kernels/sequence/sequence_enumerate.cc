// sequence_enumerate: windows of the ids of each sequence.
#include "core/interrupts.h"
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
    for (const int64_t i : Watched(SequenceCount(*offsets)))
      for (int64_t t = Begin(*offsets, i), end = Begin(*offsets, i + 1); t < end; ++t)
        for (int64_t k = 0; k < window; ++k)
          out[t * window + k] = t + k < end ? x.data<T>()[t + k] : pad;
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
