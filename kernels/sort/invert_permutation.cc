// The inverse of a permutation.
#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

Status InvertShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("x");
  if (x.known_rank() && x.rank() != 1)
    return InvalidArgument("x has shape ", x.ToString(), ", expected a vector");
  ctx.SetOut("y", x, ctx.InDType("x"));
  return Status::Ok();
}
template <typename T>
struct Invert {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("x");
    T* to = ctx.Out("y").template mutable_data<T>();
    const int64_t n = x.numel();
    WatchedFill(to, n, T(-1));
    for (const int64_t i : Watched(n)) {
      const int64_t v = x.data<T>()[i];
      if (v < 0 || v >= n || to[v] >= 0)
        return InvalidArgument("x holds ", v, " at position ", i, ", expected 0 to ", n - 1,
                               ", each once");
      to[v] = static_cast<T>(i);
    }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(invert_permutation) {
  op.Doc("where each of 0, 1, … stands in x").Input("x").Output("y").InferShape(InvertShape);
  op.Kernels<Invert, int32_t, int64_t>();
}
