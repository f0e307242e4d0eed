// gather along an axis.
#include "core/kernel_context.h"
#include "core/shapes.h"
#include "device/cuda/grid/gather.h"
#include "device/cuda/grid/grid.h"
#include "device/cuda/grid/kernel_table.h"

namespace heddle::HEDDLE_GRID {
namespace {

constexpr int64_t kNoPadding = -1;  // is no row anyway

Status Gather(Queue& queue, KernelContext& ctx) {
  const Tensor &x = ctx.In("X"), &index = ctx.In("Index");
  Tensor& out = ctx.Out("Out");
  HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(ctx.Int("axis"), x.rank()));
  return GatherRows(queue, x, index, out, x.dim(axis), x.shape().Product(axis + 1, x.rank()),
                    kNoPadding);
}
bool CoversGather(const CallView& call) {
  return AreIds(call.InDType("Index")) && !call.HasIn("Axis") && !call.Bool("wrap") &&
         call.Int("batch_dims") == 0;
}

}  // namespace
}  // namespace heddle::HEDDLE_GRID

HEDDLE_CUDA_KERNEL(gather) { kernel = {Gather, CoversGather, kReals}; }
