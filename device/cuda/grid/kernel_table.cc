#include "device/cuda/grid/kernel_table.h"

#include <unordered_map>

namespace heddle::HEDDLE_GRID {
namespace {

const std::unordered_map<std::string_view, GridKernel>& Table() {
  static const auto* const table = [] {
    KernelList list;
    AddElementKernels(&list);
    AddBinaryKernels(&list);
    AddElementProgramKernels(&list);
    AddReduceKernels(&list);
    AddMoveKernels(&list);
    AddIndexKernels(&list);
    AddNormKernels(&list);
    AddSoftmaxKernels(&list);
    AddGemmKernels(&list);
    AddConvKernels(&list);
    AddPoolKernels(&list);
    AddOptimizerKernels(&list);
    auto* map = new std::unordered_map<std::string_view, GridKernel>;
    for (const GridKernel& k : list) map->emplace(k.op, k);
    return map;
  }();
  return *table;
}

// Kernels count with 32 bits.
bool Countable(const Value* v) {
  return v == nullptr || (v->is_tensor() && v->tensor().numel() < (int64_t{1} << 31));
}

}  // namespace

const GridKernel* FindGridKernel(std::string_view op) {
  const auto found = Table().find(op);
  return found == Table().end() ? nullptr : &found->second;
}

std::vector<const GridKernel*> AllGridKernels() {
  std::vector<const GridKernel*> all;
  for (const auto& [name, kernel] : Table()) all.push_back(&kernel);
  return all;
}

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
  return kernel->covers == nullptr || kernel->covers(call);
}

}  // namespace heddle::HEDDLE_GRID
