// Whether a plan is the one that a description tells of.
#pragma once

#include "heddle/plan_description.h"
#include "heddle/status.h"

namespace heddle {

// Compares what is known before planning: version, program, machine. kInvalidArgument, in one
// sentence.
Status CheckOrigin(const PlanDescription& wanted, const PlanDescription& here);
// All that decides how a plan runs and where its values lie; the first difference, likewise.
Status CheckSamePlan(const PlanDescription& wanted, const PlanDescription& made);

}  // namespace heddle
