// A plan as a value that tools can look at.
#pragma once

#include "executor/plan/plan.h"
#include "heddle/plan_description.h"

namespace heddle {

const char* StorageName(Storage storage);
const char* ModeName(Instruction::Mode mode);
PlanDescription DescribePlan(const Plan& plan);

}  // namespace heddle
