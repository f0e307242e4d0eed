// A plan as a value that tools can look at.
#pragma once

#include <string>

#include "executor/plan/plan.h"
#include "heddle/plan_description.h"

namespace heddle {

const char* StorageName(Storage storage);
const char* ModeName(Instruction::Mode mode);
// The variable that a slot is a version of, or what else it stands for.
std::string SlotName(const Plan& plan, uint32_t slot);
PlanDescription DescribePlan(const Plan& plan);

}  // namespace heddle
