// The graph of a fused_elementwise operator as loops for the micro-program interpreter: each loop
// goes over the elements of one shape, and takes every element through its steps while it is in
// registers. (What the attributes mean: kernels/fused/element_program.h.)
#pragma once

#include <vector>

#include "core/op_context.h"
#include "device/cuda/grid/element_ops.h"
#include "device/cuda/grid/strides.h"
#include "heddle/status.h"

namespace heddle::HEDDLE_GRID {

struct ElementLoopCode {
  static constexpr int kMostSteps = 48, kMostInputs = 12, kRegisters = 16;

  struct Step {
    Element op;
    uint8_t in[2];  // registers, or kRegisters + an input
    uint8_t out;
    ElementArgs args;
    float* store;  // where the result goes besides its register; may be null
  };
  int steps = 0, inputs = 0;
  const float* from[kMostInputs] = {};
  Step step[kMostSteps] = {};
  Strides<kMostInputs> strides;  // of the inputs; numel is that of the results
};

struct ElementLoopPlan {
  ElementLoopCode code;          // without addresses
  std::vector<uint32_t> reads;   // the value of each input
  std::vector<uint32_t> stores;  // the value of each step
};
struct ElementProgramPlan {
  uint32_t inputs = 0;  // values 0 … are the operands X
  std::vector<ElementLoopPlan> loops;
  std::vector<int64_t> numel;   // of each value
  std::vector<bool> in_memory;  // of each value: some loop but its own reads it, or it is an Out
  std::vector<uint32_t> outs;   // the value of each Out
};

// There is an Element for each kind of step.
bool KnowsAllSteps(const OpContext& ctx);
Result<ElementProgramPlan> PlanElementProgram(const OpContext& ctx,
                                              const std::vector<Shape>& inputs);

}  // namespace heddle::HEDDLE_GRID
