// Rows of a table, and the gradient.
#include "core/kernel_context.h"
#include "device/cuda/grid/addend.h"
#include "device/cuda/grid/gather.h"
#include "device/cuda/grid/grid.h"
#include "device/cuda/grid/kernel_table.h"
#include "device/cuda/grid/real.h"

namespace heddle::HEDDLE_GRID {
namespace {

Status Lookup(Queue& queue, KernelContext& ctx) {
  const Tensor &w = ctx.In("W"), &ids = ctx.In("Ids");
  Tensor& out = ctx.Out("Out");
  return GatherRows(queue, w, ids, out, w.dim(0), w.dim(1), ctx.Int("padding_idx"));
}
bool CoversLookup(const CallView& call) {
  return AreIds(call.InDType("Ids")) && IsReal(call.InDType("W")) && call.InShape("W").rank() == 2;
}

// The first position of an id adds up the gradients of all positions with that id, in their order,
// so that sums are deterministic, to what the table holds.
struct ScatterAddBody {
  const float* grad;
  Ids ids;
  float* table;
  int64_t rows, width, count, padding;
  HEDDLE_BODY void operator()(Group& group, int64_t at) const {
    const int64_t id = ids[at];
    if (id < 0 || id >= rows || id == padding) return;
    for (int64_t i = 0; i < at; ++i)
      if (ids[i] == id) return;
    for (int64_t k = group.rank(); k < width; k += group.size()) {
      float sum = table[id * width + k];
      for (int64_t i = at; i < count; ++i)
        if (ids[i] == id) sum += grad[i * width + k];
      table[id * width + k] = sum;
    }
  }
};

Status LookupGrad(Queue& queue, KernelContext& ctx) {
  const Tensor &grad = ctx.In("Out@GRAD"), &ids = ctx.In("Ids");
  Tensor& out = ctx.Out("W@GRAD");
  HEDDLE_ASSIGN_OR_RETURN(const bool add, BeginWith(queue, ctx.InOpt("AddendOfW"), out));
  if (!add) HEDDLE_RETURN_IF_ERROR(queue.Zero(out.mutable_raw(), out.bytes()));
  return Groups(queue, ids.numel(), out.dim(1),
                ScatterAddBody{grad.data<float>(), Ids(ids), out.mutable_data<float>(), out.dim(0),
                               out.dim(1), ids.numel(), ctx.Int("padding_idx")});
}
bool CoversLookupGrad(const CallView& call) {
  return CoversLookup(call) && call.InDType("W") == DType::kF32 && !call.Bool("is_sparse");
}

}  // namespace
}  // namespace heddle::HEDDLE_GRID

HEDDLE_CUDA_KERNEL(lookup_table_v2) { kernel = {Lookup, CoversLookup, kNumbers}; }
HEDDLE_CUDA_KERNEL(lookup_table) { kernel = {Lookup, CoversLookup, kNumbers}; }
HEDDLE_CUDA_KERNEL(lookup_table_v2_grad) { kernel = {LookupGrad, CoversLookupGrad, kNumbers}; }
HEDDLE_CUDA_KERNEL(lookup_table_grad) { kernel = {LookupGrad, CoversLookupGrad, kNumbers}; }
