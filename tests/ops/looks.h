// How an operator looks for interrupts: how often, and how long it computes without a look.
#pragma once

#include <cstdint>
#include <optional>
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

// How long after a deadline, and after a stop, of `after_ms` a run of the example goes on, in ms by
// the clock; negative: it was done before.
struct Ends {
  double deadline_ms = 0, stop_ms = 0;
};
Ends MeasureEnds(Executor& executor, const Example& example, double after_ms);

// The example grown, by factors of its sizes, until a run takes `ms` or operands take `bytes`.
// Sizes that make the run longest go first; `seed` decides between equals.
struct GrownExample {
  Example example;
  Looks looks;
};
GrownExample GrowUntil(Executor& executor, const Example& example, double ms, int64_t bytes,
                       uint64_t seed);

// The example grown by sizes that `seed` draws, until its operands take `bytes`; nothing if they do
// not get there. `most_ms`: a run that takes longer is ended, at a look.
std::optional<GrownExample> GrowToBytes(Executor& executor, const Example& example, int64_t bytes,
                                        double most_ms, uint64_t seed);

// The result is empty, or says that the example, grown to 2^20 bytes and more by sizes that `seed`
// draws, computed without a look. `grew`: it could be grown.
std::string LooksWhenGrown(Lab& lab, const Example& example, uint64_t seed, bool* grew);

// For each operator that `glob` names one line: its name, the example, run_ms, longest_ms, looks,
// how it ended, its operands, and what MeasureEnds says of the largest that was tried.
void PrintLooks(const std::string& op, double ms, int64_t bytes, uint64_t seed);

// Ends the example at some look. The result is empty, or says what is wrong with how it ended.
std::string EndsAtALook(Lab& lab, const Example& example, uint64_t seed);

}  // namespace heddle::testing
