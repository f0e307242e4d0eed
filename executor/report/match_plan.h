// Compares a plan with a description.
#pragma once

#include "heddle/plan_description.h"
#include "heddle/status.h"

namespace heddle {

// Compares version, program and machine, which are known before planning. kInvalidArgument: they
// differ; one sentence says how.
Status CheckOrigin(const PlanDescription& wanted, const PlanDescription& here);
// Compares everything that decides how a plan runs and where its values lie. kInvalidArgument: the
// first difference.
Status CheckSamePlan(const PlanDescription& wanted, const PlanDescription& made);

}  // namespace heddle
