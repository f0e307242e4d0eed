#include "core/interrupts.h"
#include "core/shapes.h"

namespace heddle {
namespace {

Status TreeShape(ShapeContext& ctx) {
  const Shape& ids = ctx.InShape("Ids");
  const Shape& parents = ctx.InShape("Parents");
  if (!ids.known_rank() || !parents.known_rank()) return ctx.Defer();
  if (ids.rank() != 3 || (ids.is_static() && parents.is_static() && !(ids == parents)))
    return InvalidArgument("'Ids' ", ids.ToString(), " and 'Parents' ", parents.ToString(),
                           " must both have the shape [steps, batch, beams]");
  ctx.SetOut("Out", ids, ctx.InDType("Ids"));
  return Status::Ok();
}

// Follows every beam of the last step back to the first one.
template <typename T>
struct GatherTree {
  static Status Run(KernelContext& ctx) {
    const Tensor& ids = ctx.In("Ids");
    const Tensor& parents = ctx.In("Parents");
    if (parents.dtype() != ids.dtype())
      return InvalidArgument("'Parents' is ", Name(parents.dtype()), ", but 'Ids' is ",
                             Name(ids.dtype()));
    const int64_t steps = ids.dim(0), batch = ids.dim(1), beams = ids.dim(2);
    const T* id = ids.data<T>();
    const T* parent = parents.data<T>();
    T* out = ctx.Out("Out").mutable_data<T>();
    for (const int64_t b : Watched(batch))
      for (int64_t k = 0; k < beams; ++k) {
        int64_t from = k;
        for (int64_t t = steps - 1; t >= 0; --t) {
          const int64_t row = (t * batch + b) * beams;
          out[row + k] = id[row + from];
          const int64_t next = parent[row + from];
          if (next < 0 || next >= beams)
            return OutOfRange("'Parents' holds ", next, "; expected 0 to ", beams - 1);
          from = next;
        }
      }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(gather_tree) {
  op.Doc("Whole sequences of a beam search from its ids and parents.")
      .Input("Ids")
      .Input("Parents")
      .Output("Out")
      .InferShape(TreeShape)
      .Kernels<GatherTree, int32_t, int64_t>();
}
