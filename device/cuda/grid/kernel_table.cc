#include "device/cuda/grid/kernel_table.h"

#include <unordered_map>

#include "core/kernel_context.h"
#include "device/cuda/grid/real.h"

namespace heddle::HEDDLE_GRID {

#define HEDDLE_DECLARE_CUDA_KERNEL(name, file) void DefineCudaKernel_##name(GridKernel& kernel);
#include "kernels/all_cuda_kernels.inc"
#undef HEDDLE_DECLARE_CUDA_KERNEL

namespace {

using KernelMap = std::unordered_map<std::string_view, GridKernel>;

const KernelMap& Table() {
  static const auto* const table = [] {
    auto* map = new KernelMap;
#define HEDDLE_DECLARE_CUDA_KERNEL(name, file) DefineCudaKernel_##name((*map)[#name]);
#include "kernels/all_cuda_kernels.inc"
#undef HEDDLE_DECLARE_CUDA_KERNEL
    return map;
  }();
  return *table;
}

// Kernels index elements with 32 bits.
bool Countable(const Value* v) {
  return v == nullptr || (v->is_tensor() && v->tensor().numel() < (int64_t{1} << 31));
}

// Operands of real numbers have one type.
bool OneRealType(const CallView& call) {
  const BoundOp& op = call.op();
  DType type = DType::kUnknown;
  const auto fits = [&](uint32_t s) {
    if (s == kNoSlot || !call.frame()[s]->is_tensor()) return true;
    const DType t = call.frame()[s]->tensor().dtype();
    if (!IsReal(t)) return true;
    if (type == DType::kUnknown) type = t;
    return t == type;
  };
  for (const uint32_t s : op.in)
    if (!fits(s)) return false;
  for (const uint32_t s : op.out)
    if (!fits(s)) return false;
  return true;
}

}  // namespace

const GridKernel* FindGridKernel(std::string_view op) {
  const auto found = Table().find(op);
  return found == Table().end() ? nullptr : &found->second;
}

size_t CountGridKernels() { return Table().size(); }

bool Covers(const CallView& call) {
  const GridKernel* const kernel = FindGridKernel(call.def().name());
  if (kernel == nullptr || !call.known()) return false;
  const DType key = call.key();
  if (key == DType::kUnknown || (kernel->dtypes & Of(key)) == 0) return false;
  const BoundOp& op = call.op();
  for (const uint32_t s : op.in)
    if (s != kNoSlot && !Countable(call.frame()[s])) return false;
  for (const uint32_t s : op.out)
    if (s != kNoSlot && !Countable(call.frame()[s])) return false;
  if (!kernel->mixes && !OneRealType(call)) return false;
  return kernel->covers == nullptr || kernel->covers(call);
}

bool CoversAndChooses(LtChoices& lt, const CallView& call) {
  if (!Covers(call)) return false;
  const GridKernel* const kernel = FindGridKernel(call.def().name());
  if (kernel->choose != nullptr) kernel->choose(lt, call);
  return true;
}

Result<std::unique_ptr<KernelState>> PrepareGridKernel(const PrepareContext& call, Dnn* dnn) {
  const GridKernel* const kernel = FindGridKernel(call.def().name());
  if (kernel == nullptr || kernel->prepare == nullptr) return std::unique_ptr<KernelState>();
  return kernel->prepare(call, dnn);
}

}  // namespace heddle::HEDDLE_GRID
