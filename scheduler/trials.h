// Trials: finds which of several ways to do the same thing is the fastest, by timing them in turns.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace heddle {

// How many tries there are, and by which margin they decide.
struct TrialRules {
  // Tries of one way in a row. The first one is not counted: its caches and threads are in the
  // state that the way before left.
  int burst = 3;
  double margin = 0.03;  // by which another way must be faster than way 0
  double share = 0.02;   // of all time, that repeated trials may take
  // The time of a way is the counted one at 1 / quantile from the least: neither a time that an
  // interrupt spoilt nor a single lucky one.
  size_t quantile = 4;
  // Among several ways of about equal speed, one often seems faster than way 0 by chance. So the
  // winner is tried beside way 0 again, in at least this many rounds, and only these times count.
  // 0: no such round.
  int run_off = 3;
};

// Each round tries every way in a burst. Way 0 is the one to stay with unless another is faster by
// the margin. Threads: one at a time.
class Trials {
 public:
  explicit Trials(const TrialRules& rules = {}) : rules_(rules) {}

  // Begins. Allocates nothing where an earlier call had room for as many tries.
  void Open(int ways, int rounds) {
    times_.resize(static_cast<size_t>(ways));
    const size_t counted =
        static_cast<size_t>(std::max(rounds, rules_.run_off) * (rules_.burst - 1));
    for (std::vector<double>& t : times_) {
      t.clear();
      t.reserve(counted);
    }
    rounds_ = rounds;
    left_ = ways * rounds * rules_.burst;
    tries_ = rival_ = 0;
    total_ns_ = 0;
  }

  // Rounds enough for short runs: at least `least`, and more for runs below a tenth of a
  // millisecond, which a single interrupt can spoil.
  int RoundsFor(double run_ns, int least) const {
    constexpr double kTotalNs = 400000;
    constexpr int kMost = 10;
    return run_ns <= 0
               ? least
               : std::clamp(static_cast<int>(kTotalNs / run_ns / rules_.burst), least, kMost);
  }
  bool settled() const { return left_ == 0; }
  // The number of the way to try now.
  int next() const {
    if (left_ == 0) return 0;
    const int turn = (left_ - 1) / rules_.burst;
    if (rival_ != 0) return turn % 2 == 0 ? 0 : rival_;
    return turn % ways();
  }
  // Reports the time of the way that next() named, in ns.
  void Report(double ns) {
    total_ns_ += ns;
    ++tries_;
    if ((left_ - 1) % rules_.burst != rules_.burst - 1) {
      std::vector<double>& t = times_[static_cast<size_t>(next())];
      t.insert(std::upper_bound(t.begin(), t.end(), ns), ns);
    }
    if (--left_ == 0 && rival_ == 0 && rules_.run_off > 0) OpenRunOff();
  }
  int best() const {
    int at = 0;
    for (int w = 1; w < ways(); ++w)
      if (TimeOf(w) < TimeOf(at) * (at == 0 ? 1 - rules_.margin : 1)) at = w;
    return at;
  }
  double TimeOf(int way) const {
    const std::vector<double>& t = times_[static_cast<size_t>(way)];
    return t.empty() ? std::numeric_limits<double>::max() : t[t.size() / rules_.quantile];
  }

  // Whether other load seems to have spoilt the result: a quarter of some way's counted times is
  // above its least one by this factor.
  bool disturbed() const {
    constexpr double kSpread = 1.3;
    return std::any_of(times_.begin(), times_.end(), [](const std::vector<double>& t) {
      return !t.empty() && t[t.size() - 1 - t.size() / 4] > kSpread * t[0];
    });
  }

  // The number of runs after which trials may be repeated: the time that the trials cost beyond the
  // best way's own is then `share` of the time of the runs.
  int64_t RunsToPayBack() const {
    const double best_ns = TimeOf(best());
    const double beyond_ns = total_ns_ - tries_ * best_ns;
    return best_ns > 0 && beyond_ns > 0 ? static_cast<int64_t>(beyond_ns / (rules_.share * best_ns))
                                        : 0;
  }

 private:
  void OpenRunOff() {
    rival_ = best();
    if (rival_ == 0) return;
    for (std::vector<double>& t : times_) t.clear();
    left_ = 2 * std::max(rounds_, rules_.run_off) * rules_.burst;
  }
  int ways() const { return static_cast<int>(times_.size()); }

  TrialRules rules_;
  std::vector<std::vector<double>> times_;  // per way, ascending
  int rounds_ = 0, left_ = 0, tries_ = 0;
  int rival_ = 0;  // the way that is compared with way 0 in the run-off
  double total_ns_ = 0;
};

}  // namespace heddle
