// How an operator looks for interrupts: how often, and how long it computes without a look.
#pragma once

#include <cstdint>
#include <map>
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

// The example grown in a way that `seed` draws - one of its sizes alone, or any of them; with
// `axes`, sizes of operands - until its operands take `bytes` or a run takes `ms`. Nothing where it
// refuses such operands. A run that takes longer than 20 * `ms` is ended, at a look.
std::optional<GrownExample> GrowOneWay(Executor& executor, const Example& example, int64_t bytes,
                                       double ms, bool axes, uint64_t seed);

// Grows examples and judges how they look. Work is counted in processor time of the thread, by the
// token of the run: others that use the machine do not change what is found.
class GrownLooks {
 public:
  // `bytes`, `ms`, `axes`: see GrowOneWay.
  GrownLooks(int64_t bytes, double ms, bool axes) : bytes_(bytes), ms_(ms), axes_(axes) {}

  // The result is empty, or says that the example, grown as `seed` draws, computed most of its run,
  // or kMostMs, without a look, and that this time grows with the work. (On a machine in use a few
  // ms may take tens of them: that time does not.)
  std::string Judge(const Example& example, uint64_t seed);
  int grown() const { return grown_; }
  // The `count` longest times without a look that were seen, one of an operator.
  void PrintWorst(size_t count) const;

 private:
  // Whether the share of the run that has no look stays about as it is when there is more work.
  // True where the example refuses more.
  bool GrowsWithWork(const Example& example, const Looks& looks);

  static constexpr double kMostMs = 50, kLeastMs = 20, kMostShare = 0.6;

  struct Seen {
    double longest_ms, run_ms;
    std::string what;
  };
  const int64_t bytes_;
  const double ms_;
  const bool axes_;
  Lab lab_;
  int grown_ = 0;
  std::map<std::string, Seen> seen_;  // by operator
};

// For each operator that `glob` names one line: its name, the example, run_ms, longest_ms, looks,
// how it ended, its operands, and what MeasureEnds says of the largest that was tried.
void PrintLooks(const std::string& op, double ms, int64_t bytes, uint64_t seed);

// Ends the example at some look. The result is empty, or says what is wrong with how it ended.
std::string EndsAtALook(Lab& lab, const Example& example, uint64_t seed);

}  // namespace heddle::testing
