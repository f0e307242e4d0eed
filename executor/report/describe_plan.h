// Describes a plan as a value for tools.
#pragma once

#include <string>
#include <vector>

#include "executor/plan/plan.h"
#include "heddle/plan_description.h"

namespace heddle {

const char* StorageName(Storage storage);
const char* ModeName(const Plan& plan, const Instruction& in);
// The name of the variable that a slot is a version of, or of what else it represents.
std::string SlotName(const Plan& plan, uint32_t slot);
// `places`: "cpu", and those of the executor's devices.
PlanDescription DescribePlan(const Plan& plan, const std::vector<std::string>& places);

}  // namespace heddle
