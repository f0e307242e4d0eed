// fused_elementwise: one kernel interprets the steps of a loop for each element.
#include <memory>

#include "core/kernel_context.h"
#include "device/cuda/grid/element_program.h"
#include "device/cuda/grid/grid.h"
#include "device/cuda/grid/kernel_table.h"

namespace heddle::HEDDLE_GRID {
namespace {

struct InterpretBody {
  ElementLoopCode code;

  HEDDLE_BODY void operator()(int64_t i) const {
    constexpr int kRegisters = ElementLoopCode::kRegisters;
    float r[kRegisters];
    int32_t at[ElementLoopCode::kMostInputs] = {};
    auto rest = static_cast<uint32_t>(i);
    for (int d = code.strides.rank - 1; d >= 0; --d) {
      const uint32_t q = d > 0 ? code.strides.dim[d].Divide(rest) : 0;
      const auto k = static_cast<int32_t>(rest - q * code.strides.dim[d].d);
      for (int o = 0; o < code.inputs; ++o) at[o] += k * code.strides.step[o][d];
      rest = q;
    }
    for (int s = 0; s < code.steps; ++s) {
      const ElementLoopCode::Step& step = code.step[s];
      float x[2] = {};
      for (int k = 0; k < Operands(step.op); ++k) {
        const int in = step.in[k] - kRegisters;
        x[k] = in < 0 ? r[step.in[k]] : code.from[in][at[in]];
      }
      const float y = Compute(step.op, x[0], x[1], step.args);
      r[step.out] = y;
      if (step.store != nullptr) step.store[i] = y;
    }
  }
};

Status RunProgram(Queue& queue, KernelContext& ctx) {
  std::vector<Shape> shapes;
  for (int i = 0; i < ctx.InCount("X"); ++i) shapes.push_back(ctx.In("X", i).shape());
  HEDDLE_ASSIGN_OR_RETURN(const ElementProgramPlan plan, PlanElementProgram(ctx, shapes));
  std::vector<float*> address(plan.numel.size(), nullptr);
  for (uint32_t v = 0; v < plan.inputs; ++v)
    address[v] = const_cast<float*>(ctx.In("X", static_cast<int>(v)).data<float>());
  for (size_t o = 0; o < plan.outs.size(); ++o)
    address[plan.outs[o]] = ctx.Out("Out", static_cast<int>(o)).mutable_data<float>();
  std::vector<std::unique_ptr<Scratch>> between;
  for (uint32_t v = plan.inputs; v < address.size(); ++v) {
    if (!plan.in_memory[v] || address[v] != nullptr) continue;
    between.push_back(std::make_unique<Scratch>(queue));
    HEDDLE_RETURN_IF_ERROR(between.back()->Take(plan.numel[v]));
    address[v] = between.back()->data();
  }
  for (const ElementLoopPlan& loop : plan.loops) {
    InterpretBody body{loop.code};
    for (size_t i = 0; i < loop.reads.size(); ++i) body.code.from[i] = address[loop.reads[i]];
    for (size_t s = 0; s < loop.stores.size(); ++s)
      body.code.step[s].store = plan.in_memory[loop.stores[s]] ? address[loop.stores[s]] : nullptr;
    HEDDLE_RETURN_IF_ERROR(Each(queue, body.code.strides.numel, body));
  }
  return Status::Ok();
}

bool CoversProgram(const CallView& call) { return KnowsAllSteps(call); }

}  // namespace
}  // namespace heddle::HEDDLE_GRID

HEDDLE_CUDA_KERNEL(fused_elementwise) { kernel = {RunProgram, CoversProgram}; }
