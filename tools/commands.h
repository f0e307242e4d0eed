// The subcommands of the tool. Each Add function registers one; when the command line names it,
// parsing sets `chosen` to what has to be done. An
// action that a signal stopped in good order returns kCancelled.
#pragma once

#include <functional>

#include "heddle/status.h"
#include "tools/command_line.h"

namespace heddle::tools {

using Action = std::function<Status()>;

void AddRun(Command root, Action& chosen);
void AddBench(Command root, Action& chosen);
void AddInspect(Command root, Action& chosen);
void AddOps(Command root, Action& chosen);
void AddPlan(Command root, Action& chosen);
void AddProfile(Command root, Action& chosen);
void AddOpt(Command root, Action& chosen);
void AddConvert(Command root, Action& chosen);
void AddPartition(Command root, Action& chosen);
void AddGrad(Command root, Action& chosen);
void AddCache(Command root, Action& chosen);
void AddPasses(Command root, Action& chosen);
void AddTrain(Command root, Action& chosen);
void AddDoctor(Command root, Action& chosen);
void AddCompletion(Command root, Action& chosen);
void AddRunCase(Command root, Action& chosen);
void AddRunCases(Command root, Action& chosen);

}  // namespace heddle::tools
