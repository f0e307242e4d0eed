// Values whose memory is taken one by one while a plan runs, and the tokens that they could share.
#pragma once

#include <span>

#include "executor/plan/plan.h"
#include "memory/token_planner.h"

namespace heddle {

// Tokens for Plan::loose, by so many bytes each; none for those whose size nobody has seen
// (0 bytes), and none at all where the bytes are too many to add up.
TokenPlan PlanLooseValues(const Plan& plan, std::span<const size_t> bytes);

}  // namespace heddle
