// CostMeter: measures what each step of a sequence costs, in ns, by timing some runs of it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "scheduler/spin.h"

namespace heddle {

//   meter.Begin();
//   for (i …) { Step(i); meter.Lap(i); }
//   meter.End();
// after one or more such runs: meter.CostNs().
//
// The least time of each step counts: it is the one least disturbed. The price of reading the clock
// is measured and subtracted. Threads: one at a time.
class CostMeter {
 public:
  explicit CostMeter(size_t steps) : ticks_(steps, std::numeric_limits<uint64_t>::max()) {
    for (int k = 0; k < 64; ++k) {
      const uint64_t a = Ticks(), b = Ticks();
      overhead_ = std::min(overhead_, b - a);
    }
  }
  void Begin() {
    start_ns_ = NowNs();
    start_ = last_ = Ticks();
  }
  void Lap(size_t step) {
    const uint64_t now = Ticks();
    ticks_[step] = std::min(ticks_[step], now - last_);
    last_ = now;
  }
  // Ends a run and returns its time in ns.
  double End() {
    const double ns = static_cast<double>(NowNs() - start_ns_);
    const auto ticks = static_cast<double>(Ticks() - start_);
    if (ticks > 0 && ns > 0) ns_per_tick_ = ns / ticks;
    return ns;
  }
  std::vector<float> CostNs() const {
    std::vector<float> ns(ticks_.size());
    for (size_t i = 0; i < ns.size(); ++i) {
      const uint64_t t = ticks_[i] == std::numeric_limits<uint64_t>::max() ? 0 : ticks_[i];
      ns[i] =
          std::max(1.0f, static_cast<float>(static_cast<double>(t > overhead_ ? t - overhead_ : 0) *
                                            ns_per_tick_));
    }
    return ns;
  }

 private:
  std::vector<uint64_t> ticks_;
  uint64_t overhead_ = std::numeric_limits<uint64_t>::max();
  uint64_t start_ = 0, last_ = 0, start_ns_ = 0;
  double ns_per_tick_ = 1;
};

}  // namespace heddle
