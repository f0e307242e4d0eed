// Less memory for more time: training steps whose backward part computes values of the forward part
// again, in place of values that are kept until then (gradient checkpointing).
//
// What is computed again has the bits that it had: operators that draw random numbers or write
// variables are not repeated (a batch norm is, without updating its statistics again).
//
// Ownership: results share nothing with the arguments. Threads: any.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>
#include <vector>

#include "heddle/program.h"
#include "heddle/status.h"

namespace heddle::gradient {

// What a plan for the feeds says of a variable.
struct ValueCost {
  size_t bytes = 0;
  double cost_ns = 0;  // of the operator that makes it
};
using ValueCosts = std::unordered_map<std::string, ValueCost>;

struct StepWay {
  Program program;
  int again = 0;          // operators that are computed again
  double cost_ns = 0;     // their time
  size_t peak_bytes = 0;  // of temporaries, if one operator runs after another; an estimate
};

// Ways to run a step that AppendBackward and Minimize made. The first is the step as it is; each
// further one costs more time and needs less memory than the one before, by estimate.
std::vector<StepWay> WaysToRun(const Program& step, const ValueCosts& costs);

// The step without its updates, for a trial that changes no parameters.
struct Trial {
  Program program;
  std::vector<std::string> fetches;  // so that all gradients are computed
  std::vector<std::string> written;  // variables that the forward part itself writes
};
Trial WithoutUpdates(const Program& step);

}  // namespace heddle::gradient
