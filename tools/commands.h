// The subcommands of the tool. Each Add function registers one; when the command line names it,
// parsing sets `chosen` to what has to be done. Wrong usage ends parsing with a CLI::ParseError. An
// action that a signal stopped in good order returns kCancelled.
#pragma once

#include <functional>

#include "heddle/status.h"

namespace CLI {
class App;
}

namespace heddle::tools {

using Action = std::function<Status()>;

void AddRun(CLI::App& root, Action& chosen);
void AddBench(CLI::App& root, Action& chosen);
void AddInspect(CLI::App& root, Action& chosen);
void AddOps(CLI::App& root, Action& chosen);
void AddPlan(CLI::App& root, Action& chosen);
void AddProfile(CLI::App& root, Action& chosen);
void AddOpt(CLI::App& root, Action& chosen);
void AddPasses(CLI::App& root, Action& chosen);
void AddTrain(CLI::App& root, Action& chosen);
void AddDoctor(CLI::App& root, Action& chosen);
void AddCompletion(CLI::App& root, Action& chosen);
void AddRunCase(CLI::App& root, Action& chosen);
void AddRunCases(CLI::App& root, Action& chosen);

}  // namespace heddle::tools
