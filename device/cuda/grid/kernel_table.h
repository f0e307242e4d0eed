// The kernels of the CUDA device, by operator.
#pragma once

#include <string_view>
#include <vector>

#include "device/cuda/grid/queue.h"
#include "device/device.h"

namespace heddle::HEDDLE_GRID {

using GridKernelFn = Status (*)(Queue& queue, KernelContext& ctx);
// Whether a kernel serves this call: what it asks of attributes, shapes and which operands are
// there. Of the call all is known.
using CoversFn = bool (*)(const CallView& call);

struct GridKernel {
  const char* op;
  GridKernelFn run;
  CoversFn covers = nullptr;                              // none: every call
  uint32_t dtypes = 1u << static_cast<int>(DType::kF32);  // of the key
};

constexpr uint32_t Of(DType t) { return 1u << static_cast<int>(t); }
inline constexpr uint32_t kAnyDType = ~0u;

// nullptr when there is none. The table is made at first use; thread-safe.
const GridKernel* FindGridKernel(std::string_view op);
std::vector<const GridKernel*> AllGridKernels();

// There is a kernel for this call.
bool Covers(const CallView& call);

// One for each file of kernels.
using KernelList = std::vector<GridKernel>;
void AddElementKernels(KernelList* list);
void AddBinaryKernels(KernelList* list);
void AddElementProgramKernels(KernelList* list);
void AddReduceKernels(KernelList* list);
void AddMoveKernels(KernelList* list);
void AddIndexKernels(KernelList* list);
void AddNormKernels(KernelList* list);
void AddSoftmaxKernels(KernelList* list);
void AddGemmKernels(KernelList* list);
void AddConvKernels(KernelList* list);
void AddPoolKernels(KernelList* list);
void AddOptimizerKernels(KernelList* list);

}  // namespace heddle::HEDDLE_GRID
