// A plan as text for people: `heddle plan`.
#pragma once

#include <string>

#include "executor/plan/plan.h"

namespace heddle {

// A line per feed, instruction and fetch.
std::string PlanText(const Plan& plan);

}  // namespace heddle
