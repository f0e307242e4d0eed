// The search for NaN and infinity behind RunOptions::check_nan_inf.
#pragma once

#include "executor/plan/plan.h"

namespace heddle {

// Looks through what an instruction has written; `frame` is the run's. kOutOfRange with the first
// variable that holds a NaN or an infinity, and where.
Status CheckFinite(const Plan& plan, const Instruction& in, Value* const* frame);

}  // namespace heddle
