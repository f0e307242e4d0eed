#pragma once

#include "executor/run/run_state.h"
#include "heddle/run_options.h"

namespace heddle::internal {

// Fills RunOptions::report for a run that took `ns`. `alone`: it had all threads.
void FillReport(RunState& run, bool alone, double ns, RunReport* report);

}  // namespace heddle::internal
