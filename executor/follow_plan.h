// Makes a plan as another one was, which a description tells of.
#pragma once

#include <memory>

#include "core/function_ref.h"
#include "executor/plan/plan_builder.h"
#include "heddle/plan_description.h"

namespace heddle::internal {

// `request`: for the same program and feeds, with a way that has no say. `here`: the origin of what
// is made here (version, program, machine). Errors: kInvalidArgument, where the plan cannot be made
// here, or is not the one that `wanted` tells of; what differs.
Result<std::shared_ptr<const Plan>> BuildAsGiven(
    PlanRequest request, const PlanDescription& wanted, const PlanDescription& here,
    const std::vector<std::string>& places,
    FunctionRef<Result<std::shared_ptr<const Plan>>(const PlanRequest&)> build);

// The facts that implementations are chosen by, as text; empty `machine`: this one.
std::string MachineText(const Machine* machine);

// A number for all of a description that decides how runs go.
uint64_t HashOf(const PlanDescription& plan);

}  // namespace heddle::internal
