// The memory report of a plan, for heddle/memory_report.h.
#pragma once

#include <memory>
#include <vector>

#include "core/function_ref.h"
#include "executor/plan/plan_builder.h"
#include "heddle/memory_report.h"

namespace heddle {

MemoryReport ReportMemory(const Plan& plan);

// The memory of the request's program one instruction after another, in lanes, and in lanes with
// edges. `twin` is a plan for the request, `build` builds others. Nothing where lanes cannot be
// had.
Result<std::vector<MemoryReport::Way>> CompareMemory(
    PlanRequest request, std::shared_ptr<const Plan> twin,
    FunctionRef<Result<std::shared_ptr<const Plan>>(const PlanRequest&)> build);

}  // namespace heddle
