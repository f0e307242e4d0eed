// Trials: which of several ways to do the same thing is the fastest, found by trying them in turn.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

namespace heddle {

class Trials {
 public:
  // Way 0 is the one to stay with unless another is faster by `margin` (0.03 = 3 %).
  Trials(int ways, int rounds, double margin)
      : best_ns_(static_cast<size_t>(ways), std::numeric_limits<double>::max()),
        left_(ways * rounds), margin_(margin) {}

  // Rounds enough for short runs: at least `least`, and more for runs below a tenth of a
  // millisecond, which a single interrupt can spoil.
  static int RoundsFor(double run_ns, int least) {
    constexpr double kTotalNs = 400000;
    constexpr int kMost = 24;
    return run_ns <= 0 ? least : std::clamp(static_cast<int>(kTotalNs / run_ns), least, kMost);
  }
  bool settled() const { return left_ == 0; }
  // The way to try now.
  int next() const { return left_ % ways(); }
  // What the try of next() took.
  void Report(double ns) {
    double& best = best_ns_[static_cast<size_t>(next())];
    if (ns < best) best = ns;
    --left_;
  }
  // The least time seen counts: it is the one least disturbed.
  int best() const {
    int at = 0;
    for (int w = 1; w < ways(); ++w)
      if (Time(w) < Time(at) * (at == 0 ? 1 - margin_ : 1)) at = w;
    return at;
  }
  double best_ns(int way) const { return best_ns_[static_cast<size_t>(way)]; }

 private:
  int ways() const { return static_cast<int>(best_ns_.size()); }
  double Time(int w) const { return best_ns_[static_cast<size_t>(w)]; }
  std::vector<double> best_ns_;
  int left_;
  double margin_;
};

}  // namespace heddle
