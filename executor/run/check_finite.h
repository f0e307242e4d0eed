// The check behind RunOptions::check_nan_inf.
#pragma once

#include "executor/plan/plan.h"

namespace heddle {

// Checks what an instruction has written; `frame` is the run's. kOutOfRange: the first variable
// with a NaN or an infinity, and its position.
Status CheckFinite(const Plan& plan, const Instruction& in, Value* const* frame);

}  // namespace heddle
