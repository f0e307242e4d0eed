// The share of rows whose label is among their indices.
#include "core/kernel_context.h"
#include "device/cuda/grid/grid.h"
#include "device/cuda/grid/ids.h"
#include "device/cuda/grid/kernel_table.h"

namespace heddle::HEDDLE_GRID {
namespace {

struct AccuracyBody {
  Ids indices, label;
  int64_t rows, k;
  float* accuracy;
  int32_t* correct;
  int32_t* total;
  struct Add {
    HEDDLE_BODY int64_t operator()(int64_t a, int64_t b) const { return a + b; }
  };
  HEDDLE_BODY void operator()(Group& group, int64_t) const {
    int64_t hits = 0;
    for (int64_t i = group.rank(); i < rows; i += group.size()) {
      bool hit = false;
      for (int64_t j = 0; j < k; ++j) hit = hit || indices[i * k + j] == label[i];
      hits += hit;
    }
    hits = group.Reduce(hits, Add());
    if (group.rank() != 0) return;
    *accuracy = rows == 0 ? 0.0f : static_cast<float>(hits) / static_cast<float>(rows);
    if (correct != nullptr) *correct = static_cast<int32_t>(hits);
    if (total != nullptr) *total = static_cast<int32_t>(rows);
  }
};

Status Accuracy(Queue& queue, KernelContext& ctx) {
  const Tensor& indices = ctx.In("Indices");
  Tensor *correct = ctx.OutOpt("Correct"), *total = ctx.OutOpt("Total");
  return Groups(queue, 1, indices.dim(0),
                AccuracyBody{Ids(indices), Ids(ctx.In("Label")), indices.dim(0), indices.dim(1),
                             ctx.Out("Accuracy").mutable_data<float>(),
                             correct ? correct->mutable_data<int32_t>() : nullptr,
                             total ? total->mutable_data<int32_t>() : nullptr});
}
bool CoversAccuracy(const CallView& call) {
  return AreIds(call.InDType("Indices")) && AreIds(call.InDType("Label")) &&
         call.InShape("Indices").rank() == 2;
}

}  // namespace
}  // namespace heddle::HEDDLE_GRID

HEDDLE_CUDA_KERNEL(accuracy) { kernel = {Accuracy, CoversAccuracy, kNumbers}; }
