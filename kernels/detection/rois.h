// Regions of interest: boxes, each on one image of a batch.
#pragma once

#include <vector>

#include "core/kernel_context.h"
#include "core/shape_context.h"
#include "kernels/base/call_heap.h"

namespace heddle {

// X is [N, C, H, W], ROIs [R, 4] of the same dtype, the pooled sizes are positive.
Status CheckRoiOperands(const ShapeContext& ctx);

// The image of each of ROIs' regions: from Images, from RoisNum, or from the regions' sequences.
Result<std::pmr::vector<int64_t>> ImagesOf(KernelContext& ctx, int64_t images, CallHeap* heap);

}  // namespace heddle
