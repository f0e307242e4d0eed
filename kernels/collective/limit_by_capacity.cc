// limit_by_capacity: how many rows each worker may send to each expert, where an expert takes no
// more than its capacity. Workers are served in their order.
#include <vector>

#include "core/error.h"
#include "core/interrupts.h"
#include "core/kernel_context.h"
#include "core/shape_context.h"

namespace heddle {
namespace {

Status CountShape(ShapeContext& ctx) {
  ctx.SetOut("Out", ctx.InShape("expert_count"), ctx.InDType("expert_count"));
  return Status::Ok();
}

Status Limit(KernelContext& ctx) {
  const Tensor &wanted = ctx.In("expert_count"), &capacity = ctx.In("capacity");
  const int64_t workers = ctx.Int("n_worker"), experts = capacity.numel();
  if (capacity.dtype() != DType::kI64)
    return InvalidArgument("'capacity' is ", Name(capacity.dtype()), "; int64 is expected");
  if (workers < 0 || (experts > 0 && wanted.numel() / experts != workers) ||
      wanted.numel() != workers * experts)
    return InvalidArgument("'expert_count' has ", wanted.numel(), " elements; ", workers,
                           " workers and ", experts, " experts are expected");
  const int64_t* want = wanted.data<int64_t>();
  int64_t* to = ctx.Out("Out").mutable_data<int64_t>();
  std::vector<int64_t> left(capacity.data<int64_t>(), capacity.data<int64_t>() + experts);
  for (const int64_t w : Watched(workers))
    for (int64_t e = 0; e < experts; ++e) {
      int64_t& room = left[static_cast<size_t>(e)];
      const int64_t given = std::max<int64_t>(0, std::min(room, want[w * experts + e]));
      to[w * experts + e] = given;
      room -= want[w * experts + e];
    }
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(limit_by_capacity) {
  op.Doc(
        "of expert_count[w * experts + e], what worker w sends to expert e, as much as e's "
        "capacity "
        "has room for, after the workers before")
      .Input("expert_count")
      .Input("capacity")
      .Output("Out")
      .Attr("n_worker", 1);
  op.KernelKey("expert_count").InferShape(CountShape).Kernel(DType::kI64, Limit);
}
