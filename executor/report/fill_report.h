#pragma once

#include "executor/run/run_state.h"
#include "heddle/run_options.h"

namespace heddle::internal {

// What RunOptions::report asks for, of a run that has ended after `ns`. `alone`: it had all
// threads.
void FillReport(RunState& run, bool alone, double ns, RunReport* report);

}  // namespace heddle::internal
