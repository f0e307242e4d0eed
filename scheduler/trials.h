// Trials: which of several ways to do the same thing is the fastest, found by trying them in turn.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace heddle {

// Each round tries every way some times in a row, of which the first is not counted: it finds
// caches and sleeping threads as the way before left them, not as this way would. Of several ways
// that are about as fast, one mostly seems faster than way 0 by chance: the one that does is tried
// beside way 0 once more, and only these times count. Threads: one at a time.
class Trials {
 public:
  // Way 0 is the one to stay with unless another is faster by `margin` (0.03 = 3 %).
  Trials(int ways, int rounds, double margin)
      : times_(static_cast<size_t>(ways)),
        rounds_(rounds),
        left_(ways * rounds * kBurst),
        margin_(margin) {}

  // Rounds enough for short runs: at least `least`, and more for runs below a tenth of a
  // millisecond, which a single interrupt can spoil.
  static int RoundsFor(double run_ns, int least) {
    constexpr double kTotalNs = 400000;
    constexpr int kMost = 10;
    return run_ns <= 0 ? least
                       : std::clamp(static_cast<int>(kTotalNs / run_ns / kBurst), least, kMost);
  }
  bool settled() const { return left_ == 0; }
  // The way to try now.
  int next() const {
    if (left_ == 0) return 0;
    const int turn = (left_ - 1) / kBurst;
    if (rival_ != 0) return turn % 2 == 0 ? 0 : rival_;
    return turn % ways();
  }
  // What the try of next() took.
  void Report(double ns) {
    total_ns_ += ns;
    ++tries_;
    if ((left_ - 1) % kBurst != kBurst - 1) times_[static_cast<size_t>(next())].push_back(ns);
    if (--left_ == 0 && rival_ == 0) OpenRunOff();
  }
  int best() const {
    int at = 0;
    for (int w = 1; w < ways(); ++w)
      if (Time(w) < Time(at) * (at == 0 ? 1 - margin_ : 1)) at = w;
    return at;
  }

  // Runs of the best way among which what the tries took beyond it is a small share: sooner than
  // that they are not worth repeating.
  int64_t RunsToPayBack() const {
    constexpr double kShare = 0.02;
    const double best_ns = Time(best());
    const double beyond_ns = total_ns_ - tries_ * best_ns;
    return best_ns > 0 && beyond_ns > 0 ? static_cast<int64_t>(beyond_ns / (kShare * best_ns)) : 0;
  }

 private:
  static constexpr int kBurst = 3, kLeastRunOff = 3;
  void OpenRunOff() {
    rival_ = best();
    if (rival_ == 0) return;
    for (std::vector<double>& t : times_) t.clear();
    left_ = 2 * std::max(rounds_, kLeastRunOff) * kBurst;
  }
  int ways() const { return static_cast<int>(times_.size()); }
  // The lower quartile: neither what an interrupt spoilt nor a single lucky run.
  double Time(int w) const {
    std::vector<double> t = times_[static_cast<size_t>(w)];
    if (t.empty()) return std::numeric_limits<double>::max();
    std::sort(t.begin(), t.end());
    return t[t.size() / 4];
  }
  std::vector<std::vector<double>> times_;
  int rounds_, left_, tries_ = 0;
  int rival_ = 0;  // of way 0, in the run-off
  double total_ns_ = 0;
  double margin_;
};

}  // namespace heddle
