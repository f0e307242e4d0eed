// The kernels of the CUDA device, by operator. A kernel stands in the folder of its operator:
//
//   HEDDLE_CUDA_KERNEL(conv2d) { kernel = {Conv, FlatWithoutBias}; }
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "device/cuda/grid/element.h"
#include "device/cuda/grid/queue.h"
#include "device/device.h"

namespace heddle::HEDDLE_GRID {

class Dnn;

using GridKernelFn = Status (*)(Queue& queue, KernelContext& ctx);
// Whether the kernel can compute this call, by its attributes, its shapes and the operands that are
// there. Everything about the call is known.
using CoversFn = bool (*)(const CallView& call);
// Makes the choices that runs of this call, which the kernel covers, will look up.
using ChooseFn = void (*)(LtChoices& lt, const CallView& call);
// Prepares the runs of a call that the kernel covers; `dnn` may be null.
using GridPrepareFn = Result<std::unique_ptr<KernelState>> (*)(const PrepareContext& call,
                                                               Dnn* dnn);
// An operator's attributes as numbers.
using ElementArgsFn = ElementArgs (*)(const OpContext& attrs);

// The operator as a step of fused loops (element_program.h).
struct ElementStep {
  Element op;
  ElementArgsFn args = nullptr;                         // nullptr: there are none
  Element (*choose)(const OpContext& attrs) = nullptr;  // instead of `op`, by the attributes
  bool broadcasts = false;                              // two operands, with attribute axis
  bool (*knows)(const OpContext& attrs) = nullptr;  // nullptr: the step is there for all attributes
};
inline ElementStep StepOfTwo(Element op) { return {.op = op, .broadcasts = true}; }

constexpr uint32_t Of(DType t) { return 1u << static_cast<int>(t); }
inline constexpr uint32_t kFloat = Of(DType::kF32);
inline constexpr uint32_t kReals = kFloat | Of(DType::kF16) | Of(DType::kBF16);
inline constexpr uint32_t kNumbers = kReals | Of(DType::kI32) | Of(DType::kI64);
inline constexpr uint32_t kPlain = kNumbers | Of(DType::kBool);
inline constexpr uint32_t kAnyDType = ~0u;

struct GridKernel {
  GridKernelFn run = nullptr;
  CoversFn covers = nullptr;  // nullptr: every call
  uint32_t dtypes = kFloat;   // of the key
  std::optional<ElementStep> step = std::nullopt;
  bool mixes = false;         // real numbers of several types in one call; `covers` says which
  ChooseFn choose = nullptr;  // nullptr: there is nothing to choose
  GridPrepareFn prepare = nullptr;  // nullptr: nothing is to be prepared
};

// Defines the kernel of an operator; the build lists every HEDDLE_CUDA_KERNEL line of
// kernels/*/*.cu by itself.
#define HEDDLE_CUDA_KERNEL(name)                    \
  namespace heddle::HEDDLE_GRID {                   \
  void DefineCudaKernel_##name(GridKernel& kernel); \
  }                                                 \
  void heddle::HEDDLE_GRID::DefineCudaKernel_##name(GridKernel& kernel)

// nullptr when there is none. The table is made at first use; thread-safe.
const GridKernel* FindGridKernel(std::string_view op);
// The number of operators that have a kernel.
size_t CountGridKernels();

// There is a kernel for this call.
bool Covers(const CallView& call);
// Covers(), for a plan: a call that is covered is prepared.
bool CoversAndChooses(LtChoices& lt, const CallView& call);
// Device::Prepare for these kernels.
Result<std::unique_ptr<KernelState>> PrepareGridKernel(const PrepareContext& call, Dnn* dnn);
// For CoversFn: the output is of a type that kernels fill.
inline bool PlainOut(const CallView& call) { return (kPlain & Of(call.OutDType("Out"))) != 0; }

}  // namespace heddle::HEDDLE_GRID
