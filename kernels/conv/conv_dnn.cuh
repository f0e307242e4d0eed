// Convolutions on a card by a library (device/cuda/grid/dnn.h), as one implementation of the family
// "conv" beside the kernels of conv.cu. Prepare chooses; the choice is the state's implementation.
#pragma once

#include <memory>

#include "device/cuda/grid/dnn.h"
#include "device/cuda/grid/kernel_table.h"

namespace heddle::HEDDLE_GRID {

Result<std::unique_ptr<KernelState>> PrepareConv(const PrepareContext& ctx, Dnn* dnn);
Result<std::unique_ptr<KernelState>> PrepareConvTranspose(const PrepareContext& ctx, Dnn* dnn);
Result<std::unique_ptr<KernelState>> PrepareConvGrad(const PrepareContext& ctx, Dnn* dnn);
Result<std::unique_ptr<KernelState>> PrepareConvTransposeGrad(const PrepareContext& ctx, Dnn* dnn);
Result<std::unique_ptr<KernelState>> PrepareFusedConv(const PrepareContext& ctx, Dnn* dnn);
Result<std::unique_ptr<KernelState>> PrepareFusedConvTranspose(const PrepareContext& ctx, Dnn* dnn);

// Runs the call as it was prepared; false: it was not prepared for the library, and nothing was
// done.
Result<bool> RunPlannedConv(Queue& queue, KernelContext& ctx);
Result<bool> RunPlannedConvTranspose(Queue& queue, KernelContext& ctx);
Result<bool> RunPlannedConvGrad(Queue& queue, KernelContext& ctx);
Result<bool> RunPlannedConvTransposeGrad(Queue& queue, KernelContext& ctx);
Result<bool> RunPlannedFusedConv(Queue& queue, KernelContext& ctx);
Result<bool> RunPlannedFusedConvTranspose(Queue& queue, KernelContext& ctx);

// The library where the call was prepared for it, else the kernel `kOwn`.
template <Result<bool> (*kPlanned)(Queue&, KernelContext&), GridKernelFn kOwn>
Status Planned(Queue& queue, KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const bool done, kPlanned(queue, ctx));
  return done ? Status::Ok() : kOwn(queue, ctx);
}

}  // namespace heddle::HEDDLE_GRID
