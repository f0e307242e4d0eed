// Trials: which of several ways to do the same thing is the fastest, found by trying them in turn.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace heddle {

// The rule by which a question is settled.
struct TrialRules {
  // Tries of one way in a row. The first of them is not counted: it finds caches and sleeping
  // threads as the way before left them.
  int burst = 3;
  double margin = 0.03;  // by which another way must be faster than way 0
  double share = 0.02;   // of the time, that trials may take when they are repeated
  // The time that stands for a way: that at 1 / quantile of those counted, from the least. Neither
  // what an interrupt spoilt nor a single lucky run.
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

  // Begins. Takes no memory where there was room for as many tries before.
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
  // The way to try now.
  int next() const {
    if (left_ == 0) return 0;
    const int turn = (left_ - 1) / rules_.burst;
    if (rival_ != 0) return turn % 2 == 0 ? 0 : rival_;
    return turn % ways();
  }
  // Takes the time of the way that next() named.
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

  // Something else seems to have run meanwhile, so that the result may be wrong: a quarter of some
  // way's counted times lie this far above its least one.
  bool disturbed() const {
    constexpr double kSpread = 1.3;
    return std::any_of(times_.begin(), times_.end(), [](const std::vector<double>& t) {
      return !t.empty() && t[t.size() - 1 - t.size() / 4] > kSpread * t[0];
    });
  }

  // Runs of the best way among which what the tries took beyond it is a small share: sooner than
  // that they are not worth repeating.
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
  int rival_ = 0;  // of way 0, in the run-off
  double total_ns_ = 0;
};

}  // namespace heddle
