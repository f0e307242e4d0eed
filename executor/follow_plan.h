// Makes a plan that is the same as one described by a PlanDescription.
#pragma once

#include <memory>

#include "core/function_ref.h"
#include "executor/plan/plan_builder.h"
#include "heddle/plan_description.h"

namespace heddle::internal {

// `request`: for the same program and feeds; its way is ignored. `here`: version, program and
// machine of this process. Errors: kInvalidArgument: the plan cannot be made here, or the plan made
// differs from `wanted`, with the difference.
Result<std::shared_ptr<const Plan>> BuildAsGiven(
    PlanRequest request, const PlanDescription& wanted, const PlanDescription& here,
    const std::vector<std::string>& places,
    FunctionRef<Result<std::shared_ptr<const Plan>>(const PlanRequest&)> build);

// The facts by which implementations are chosen, as text; nullptr: those of this machine.
std::string MachineText(const Machine* machine);

// A hash of everything in a description that decides how runs proceed.
uint64_t HashOf(const PlanDescription& plan);

}  // namespace heddle::internal
