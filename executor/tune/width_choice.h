// WidthChoice: do the runs of a plan, one instruction after another, take less time when its
// kernels keep to one thread than when they use all? So it is with short ones where what one thread
// writes and another reads has a long way: between processors that share no cache, or on a machine
// that others use, too. Where a virtual machine's processors are moved about, that changes within
// seconds. So it is tried again when runs have become slower, and now and then besides, for a
// hundredth of the time at most. Takes nothing from the heap, as runs do not.
//
// Threads: one at a time, as with runs that have all threads to themselves.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

namespace heddle {

class WidthChoice {
 public:
  struct Turn {
    bool narrow = false;  // with one thread
    bool tried = false;
  };
  // What the coming run is to do. When it succeeds, Report is called.
  Turn Next() {
    ++runs_;
    if (tries_left_ == 0 && !off_ && (runs_ > next_ || (slow_ >= kSlowRuns && runs_ > soonest_)))
      Begin();
    if (tries_left_ > 0) return {Way() == kNarrow, true};
    return {narrow_, false};
  }
  // What the run took.
  void Report(double ns) {
    if (tries_left_ == 0) {
      least_ns_ = std::min(least_ns_, ns);
      slow_ = !narrow_ && ns > kSlower * wide_ns_ ? slow_ + 1 : 0;
      return;
    }
    // The first run of a burst finds caches and sleeping threads as the other way left them.
    if (tries_left_ % kBurst != 0) {
      times_[Way()][counted_[Way()]++] = ns;
    }
    total_ns_ += ns;
    --tries_left_;
    if (tries_left_ == 0) End();
  }

  // Runs that take longer gain from several threads wherever these are: nothing is tried.
  static constexpr double kLongNs = 2e6;
  static constexpr int64_t kFirstRuns = 8;     // before the first trials
  static constexpr int64_t kLeastRuns = 256;   // between trials, if runs have become slower
  static constexpr int64_t kNarrowRuns = 512;  // with one thread, before other trials
  static constexpr int64_t kWideRuns = 2048;   // with all

 private:
  enum : size_t { kWide, kNarrow, kWays };
  static constexpr int kBurst = 4, kRounds = 1, kTries = kBurst * kRounds * int{kWays};
  static constexpr double kMargin = 0.05;  // by which one thread must be faster
  static constexpr double kShare = 0.01;   // of the time, for trials
  static constexpr double kSlower = 1.3;   // than at the last trials, for some runs in a row
  static constexpr int kSlowRuns = 8;

  size_t Way() const { return static_cast<size_t>((tries_left_ - 1) / kBurst) % kWays; }
  void Begin() {
    off_ = least_ns_ > kLongNs;
    if (off_) return;
    tries_left_ = kTries;
    counted_ = {};
    total_ns_ = 0;
  }
  void End() {
    const double wide = Time(kWide), narrow = Time(kNarrow), best = std::min(wide, narrow);
    narrow_ = narrow < (1 - kMargin) * wide;
    const double beyond = total_ns_ - kTries * best;
    const auto pays_back = static_cast<int64_t>(beyond / (kShare * std::max(best, 1.)));
    wide_ns_ = wide;
    slow_ = 0;
    least_ns_ = std::numeric_limits<double>::infinity();
    soonest_ = runs_ + std::max(kLeastRuns, pays_back);
    next_ = runs_ + std::max(narrow_ ? kNarrowRuns : kWideRuns, pays_back);
  }
  // The second least of three: neither what an interrupt spoilt nor a single lucky run.
  double Time(size_t way) {
    std::sort(times_[way].begin(), times_[way].end());
    return times_[way][1];
  }

  bool narrow_ = false, off_ = false;
  int tries_left_ = 0;
  int64_t runs_ = 0, next_ = kFirstRuns, soonest_ = kFirstRuns;
  int slow_ = 0;                                               // runs in a row
  double least_ns_ = std::numeric_limits<double>::infinity();  // since the last trials
  double wide_ns_ = 0, total_ns_ = 0;
  std::array<std::array<double, (kBurst - 1) * kRounds>, kWays> times_{};
  std::array<size_t, kWays> counted_{};
};

}  // namespace heddle
