// Kernels of float32 for 16-bit numbers: operands are converted into work space, results back.
#pragma once

#include "device/cuda/grid/kernel_table.h"
#include "device/cuda/grid/queue.h"

namespace heddle::HEDDLE_GRID {

Status RunInFloat(Queue& queue, KernelContext& ctx, GridKernelFn run);

// `kRun` for any real numbers.
template <GridKernelFn kRun>
Status InFloat(Queue& queue, KernelContext& ctx) {
  return RunInFloat(queue, ctx, kRun);
}

}  // namespace heddle::HEDDLE_GRID
