#pragma once

#include <string>
#include <vector>

#include "executor/run/run_state.h"
#include "heddle/run_options.h"

namespace heddle::internal {

// Fills RunOptions::report for a run that took `ns`. `shared`: its instructions were shared out
// among as many of `threads` as the plan is for. `places`: the names of the host and the executor's
// devices.
void FillReport(RunState& run, bool shared, int threads, const std::vector<std::string>& places,
                double ns, RunReport* report);

}  // namespace heddle::internal
