// Training within a limit of memory: chooses what a step keeps for its backward part, and what it
// computes again.
//
// Ownership: results share nothing with the arguments. Threads: one at a time. Errors:
// kResourceExhausted: nothing fits; the message has the least that would. kUnimplemented: shapes of
// the step are known only in the run.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "heddle/executor.h"
#include "heddle/program.h"
#include "heddle/status.h"

namespace heddle::training {

struct FittingStep {
  Program program;
  size_t variables = 0;    // bytes of parameters and of the optimizer's state
  size_t temporaries = 0;  // that the plan for the example takes
  std::string said;
};

// The step's fastest way (gradient/recompute.h) of which variables and temporaries are within
// `limit` bytes. More memory never means more time: the ways and their order do not depend on the
// limit. `compile`: as the step will be compiled, with its fetches; `example`: the largest batch.
Result<FittingStep> FitStep(Executor& executor, const Model& step, const CompileOptions& compile,
                            const std::vector<Feed>& example, size_t limit);

// How a step is compiled within a limit: one instruction after another, so that temporaries take as
// little as possible. Kernels use all threads.
CompileOptions WithinLimit(CompileOptions compile);

}  // namespace heddle::training
