// Verbose messages of the tool, for GLOG_v: what the passes did, the plan, and each instruction of
// a run.
#pragma once

#include "heddle/heddle.h"

namespace heddle::tools {

// Level 1: a line for each pass that changed the program.
void LogPasses(const PassReport& report);
// Level 2: the plan, a line for each instruction.
void LogPlan(Executor& executor, const CompiledProgram& compiled, const std::vector<Feed>& feeds);

// Whether LogRun has something to say: then a run needs RunOptions::report and trace.
bool LogsRuns();
// Level 3: each instruction in the order in which they ended, with its operands' types and shapes.
// Level 4: shape inference, releases and waits, and the bytes alive as they change, too.
void LogRun(const RunReport& report);

}  // namespace heddle::tools
