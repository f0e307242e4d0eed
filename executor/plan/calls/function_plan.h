// FunctionPlan: a block that is planned once and run by several instructions, each with operands of
// its own (passes/functions/). A call binds the block's parameters and results to the memory of its
// operands, so nothing is copied.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/op_def.h"

namespace heddle {

class KernelContext;

struct FunctionPlan {
  int block = 0;
  // Slots of the block (Storage::kBound), in the order of the call's operands.
  std::vector<uint32_t> parameters, results;
  std::vector<uint32_t> views;  // slots that view a parameter: bound anew in each call
};

// The state of an instruction that calls a function.
struct PlannedCall final : KernelState {
  uint32_t function = 0;  // index in Plan::functions
  // Per instruction of the block: the state for this call's constants, such as its packed weights;
  // nullptr: the instruction's own. Empty: all are their own.
  std::vector<std::shared_ptr<const KernelState>> states;
};

// The kernel of such an instruction; executor/run/run_call.cc has it.
Status RunPlannedCall(KernelContext& ctx);

}  // namespace heddle
