// How an operator looks for interrupts: how often, and how long it computes without a look.
#pragma once

#include <cstdint>
#include <string>

#include "tests/ops/lab.h"

namespace heddle::testing {

// One run of an example on the calling thread.
struct Looks {
  Status status;
  int64_t count = 0;
  // In ms of the thread's processor time: the run, and the longest stretch without a look.
  double run_ms = 0, longest_ms = 0;
};

// `stop_at`: the look at which the host says that the run is to end; 0: none. `most_ms`: likewise
// once the run has taken so long.
Looks RunWithLooks(Executor& executor, const Example& example, int64_t stop_at = 0,
                   double most_ms = 1e9);

// The example grown, by factors of its sizes, until a run takes `ms` or operands take `bytes`.
// Sizes that make the run longest go first; `seed` decides between equals.
struct GrownExample {
  Example example;
  Looks looks;
};
GrownExample GrowUntil(Executor& executor, const Example& example, double ms, int64_t bytes,
                       uint64_t seed);

// For each operator that `glob` names one line: its name, the example, run_ms, longest_ms, looks.
void PrintLooks(const std::string& op, double ms, int64_t bytes, uint64_t seed);

// Ends the example at some look. The result is empty, or says what is wrong with how it ended.
std::string EndsAtALook(Lab& lab, const Example& example, uint64_t seed);

}  // namespace heddle::testing
