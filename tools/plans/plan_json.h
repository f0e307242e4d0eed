// Plans as JSON (docs/json.md, heddle.plan), in both directions. Not installed.
#pragma once

#include <string>

#include "heddle/plan_description.h"
#include "heddle/status.h"
#include "tools/json_output.h"
#include "tools/options.h"

namespace heddle::tools {

// The plan that `heddle plan --json` printed. kInvalidArgument names the key that is wrong.
Result<PlanDescription> PlanFromJson(const Json& json);
// Reads the file of --plan, if there is one: the options under which the plan was made become those
// of `options`, which then follow it.
Status FollowPlan(ModelOptions* options);
// The options that a plan depends on, as `heddle plan --json` prints them.
Json PlanOptionsJson(const ModelOptions& options);

}  // namespace heddle::tools
