#include "training/memory_limit.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <utility>

#include "gradient/recompute.h"
#include "heddle/generator.h"

namespace heddle::training {
namespace {

using gradient::StepWay;
using gradient::ValueCosts;

// Bytes and costs by variable, of the step as it is written.
Result<ValueCosts> CostsOf(Executor& executor, const Model& step, CompileOptions compile,
                           const std::vector<Feed>& example) {
  compile.opt_level = 0;
  HEDDLE_ASSIGN_OR_RETURN(const CompiledProgram compiled,
                          executor.Compile(step.program, step.scope, compile));
  HEDDLE_ASSIGN_OR_RETURN(const PlanDescription plan, executor.DescribePlan(compiled, example));
  ValueCosts costs;
  for (const auto& slot : plan.slots)
    costs[slot.variable].bytes = std::max(costs[slot.variable].bytes, slot.bytes);
  for (const auto& instruction : plan.instructions) {
    if (instruction.block != 0) continue;
    for (const int slot : instruction.outputs)
      if (slot >= 0)
        costs[plan.slots[static_cast<size_t>(slot)].variable].cost_ns = instruction.cost_ns;
  }
  return costs;
}

size_t VariablesOf(const Model& step) {
  size_t bytes = 0;
  for (const TensorInfo& info : step.program.persistables()) {
    const Value* value = step.scope->Find(info.name);
    if (value != nullptr && value->is_tensor() && value->initialized())
      bytes += value->tensor().bytes();
  }
  return bytes;
}

// Bytes that a plan takes for the example.
Result<size_t> ArenaOf(Executor& executor, const CompiledProgram& compiled,
                       const std::vector<Feed>& example) {
  HEDDLE_ASSIGN_OR_RETURN(const PlanStats stats, executor.Prepare(compiled, example));
  if (!stats.static_shapes)
    return Status(
        StatusCode::kUnimplemented,
        "a memory limit: shapes of the step are known only in the run, so that its memory "
        "is not known before");
  return stats.arena_bytes;
}

// The block that memory of so many bytes is taken from: pools have four sizes per power of two.
size_t BlockOf(size_t bytes) {
  if (bytes < 8) return bytes;
  const size_t base = std::bit_floor(bytes - 1), step = base / 4;
  return base + (bytes - base + step - 1) / step * step;
}

// What a run takes beside the plan's memory: work space of kernels that does not fit there, and
// outputs. The step runs once, without its updates, on an executor of its own.
Result<size_t> BesideOf(const Executor& executor, const Program& program, const Model& step,
                        CompileOptions compile, const std::vector<Feed>& example) {
  const gradient::Trial trial = gradient::WithoutUpdates(program);
  auto scope = std::make_shared<Scope>(step.scope);
  for (const std::string& name : trial.written) {
    const Value* value = step.scope->Find(name);
    if (value != nullptr && value->is_tensor()) scope->Set(name, Value(value->tensor().Clone()));
  }
  compile.fetches.insert(compile.fetches.end(), trial.fetches.begin(), trial.fetches.end());
  Executor once({.threads = executor.threads()});
  HEDDLE_ASSIGN_OR_RETURN(const CompiledProgram compiled,
                          once.Compile(trial.program, scope, compile));
  HEDDLE_ASSIGN_OR_RETURN(const size_t arena, ArenaOf(once, compiled, example));
  Generator generator(0);
  const auto values = once.RunValues(compiled, example, {.generator = &generator});
  if (!values.ok()) return values.status();
  const size_t peak = once.MemoryUse()[0].peak_bytes;
  return peak - std::min(peak, BlockOf(arena));
}

// Bytes that a step takes: the plan's, and those beside.
Result<size_t> TemporariesOf(Executor& executor, const Program& program, const Model& step,
                             const CompileOptions& compile, const std::vector<Feed>& example) {
  HEDDLE_ASSIGN_OR_RETURN(const CompiledProgram compiled,
                          executor.Compile(program, step.scope, compile));
  HEDDLE_ASSIGN_OR_RETURN(const size_t arena, ArenaOf(executor, compiled, example));
  HEDDLE_ASSIGN_OR_RETURN(const size_t beside, BesideOf(executor, program, step, compile, example));
  return BlockOf(arena) + beside;
}

}  // namespace

CompileOptions WithinLimit(CompileOptions compile) {
  compile.schedule = Schedule::kSerial;
  return compile;
}

Result<FittingStep> FitStep(Executor& executor, const Model& step, const CompileOptions& compile,
                            const std::vector<Feed>& example, size_t limit) {
  const CompileOptions within = WithinLimit(compile);
  FittingStep fitting;
  fitting.variables = VariablesOf(step);
  HEDDLE_ASSIGN_OR_RETURN(const ValueCosts costs, CostsOf(executor, step, within, example));
  size_t least = 0, free = 0;
  for (const StepWay& way : gradient::WaysToRun(step.program, costs)) {
    HEDDLE_ASSIGN_OR_RETURN(const size_t bytes,
                            TemporariesOf(executor, way.program, step, within, example));
    const size_t all = fitting.variables + bytes;
    if (free == 0) free = all;
    if (least == 0 || all < least) least = all;
    if (all > limit) continue;
    fitting.program = way.program;
    fitting.temporaries = bytes;
    fitting.said = "memory limit: a step takes " + std::to_string(all) + " bytes, " +
                   std::to_string(fitting.variables) + " of them parameters and optimizer state";
    if (way.again > 0)
      fitting.said += "; " + std::to_string(way.again) +
                      " operators are computed again for the gradients, without which it would "
                      "take " +
                      std::to_string(free) + " bytes";
    return fitting;
  }
  return Status(StatusCode::kResourceExhausted,
                "a memory limit of " + std::to_string(limit) + " bytes: a step takes at least " +
                    std::to_string(least) + " bytes, " + std::to_string(fitting.variables) +
                    " of them parameters and optimizer state; " + std::to_string(free) +
                    " if nothing is computed again");
}

}  // namespace heddle::training
