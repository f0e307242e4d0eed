// Makes heddle/memory_report.h's report of a plan.
#pragma once

#include <memory>
#include <vector>

#include "core/function_ref.h"
#include "executor/plan/plan_builder.h"
#include "heddle/memory_report.h"

namespace heddle {

MemoryReport ReportMemory(const Plan& plan);

// The memory of the request's program one instruction after another, in lanes, and in lanes with
// memory edges. `twin`: a plan for the request; `build` makes others. Empty where lanes are not
// possible.
Result<std::vector<MemoryReport::Way>> CompareMemory(
    PlanRequest request, std::shared_ptr<const Plan> twin,
    FunctionRef<Result<std::shared_ptr<const Plan>>(const PlanRequest&)> build);

}  // namespace heddle
