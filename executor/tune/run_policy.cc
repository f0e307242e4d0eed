#include "executor/tune/run_policy.h"

#include <utility>

#include "scheduler/units.h"

namespace heddle {
namespace {

// Steps are timed in at least kTimedRuns runs, and in up to kMostTimedRuns while the longest of
// these runs took more than kAgree times as long as the shortest.
constexpr int kTimedRuns = 2, kMostTimedRuns = 6;
constexpr double kAgree = 1.3;
// Longer runs are disturbed so little that they need few repetitions.
constexpr double kLongRunNs = 50e6;

// Trials of lanes and queues against the plain way. The margin of 3 % is because hand-overs are
// late on a busy machine, which also costs other threads' time; chance is left to the run-off.
constexpr TrialRules kVariantRules = {
    .burst = 3, .margin = 0.03, .share = 0.02, .quantile = 4, .run_off = 3};
constexpr int kFirstRounds = 2, kLaterRounds = 1;
// Before their first repetition come kFirstInterval * kIntervalGrowth runs.
constexpr int64_t kFirstInterval = 64, kIntervalGrowth = 8;
// The trials are repeated after at most this much time spent in runs.
constexpr double kMostBetweenNs = 30e9;

// Trials of one thread against all, for runs of some microseconds, repeated as long as a program
// runs: they may take half as much of the time, and there is no run-off, so the margin has to cover
// chance. The second least of three times counts.
constexpr TrialRules kWidthRules = {
    .burst = 4, .margin = 0.05, .share = 0.01, .quantile = 3, .run_off = 0};
constexpr int kWidthRounds = 1;
constexpr int64_t kLeastRuns = 256;   // between trials, if runs have become slower
constexpr int64_t kNarrowRuns = 512;  // with one thread, before the next trials
constexpr int64_t kWideRuns = 2048;   // with all threads
// Runs count as slower, or faster, than in the last trials when kOtherRuns judged runs in a row
// differ by this factor.
constexpr double kOtherTime = 1.3;
constexpr int kOtherRuns = 8;
// Every kJudged-th run is judged. (Where widths are tried, every run is.)
constexpr int64_t kJudged = 8;

}  // namespace

RunPolicy::RunPolicy(const Subject& subject)
    : subject_(subject), variant_trials_(kVariantRules), width_trials_(kWidthRules) {
  if (subject.widths) width_trials_.Open(kWidths, kWidthRounds);  // allocates now, not in trials
  if (!subject.variants) Settle(0);
}

RunPolicy::Turn RunPolicy::Next(bool alone, bool slowed) {
  if (!alone) return {};
  if (slowed) [[unlikely]]
    return {.variant = settled_variant()};
  if (stage_ >= Stage::kTryWidth) [[likely]] {
    const bool early = variants_ > 1 && settled_runs_ >= soonest_trials_ && TimesHaveChanged();
    if ((settled_runs_++ < next_trials_ && !early) || stage_ == Stage::kTryWidth) {
      const int variant = settled_.load(std::memory_order_relaxed);
      if (variant == 0 && subject_.widths) return NextWidth();
      return {.judged = settled_runs_ % kJudged == 0, .variant = variant};
    }
    OpenVariantTrials(kLaterRounds);
  }
  if (stage_ == Stage::kPropose && proposal_.load(std::memory_order_acquire) == Proposal::kMade) {
    if (variants_ == 1) {
      Settle(0);
      return {};
    }
    next_trials_ = kFirstInterval;
    OpenVariantTrials(costs_.plain_ns > kLongRunNs
                          ? 1
                          : variant_trials_.RoundsFor(costs_.plain_ns, kFirstRounds));
  }
  return NextOf(stage_);
}

RunPolicy::Turn RunPolicy::NextOf(Stage stage) {
  using What = Turn::What;
  switch (stage) {
    case Stage::kWarmUp:
      return {.what = What::kWarmUp, .judged = true};
    case Stage::kTimeWide:
      return {.what = What::kTime, .judged = true, .meter = meter_.get()};
    case Stage::kTimeNarrow:
      return {.what = What::kTime, .narrow = true, .judged = true, .meter = meter_.get()};
    case Stage::kTryVariants:
      return {.what = What::kTryVariant, .judged = true, .variant = variant_trials_.next()};
    default:
      return {};
  }
}

RunPolicy::Turn RunPolicy::NextWidth() {
  ++plain_runs_;
  if (stage_ == Stage::kSettled &&
      (plain_runs_ > next_width_ || (TimesHaveChanged() && plain_runs_ > soonest_width_))) {
    // Not for good: runs may have been this long because the machine was busy.
    if (std::exchange(least_ns_, std::numeric_limits<double>::infinity()) > kLongNs) {
      next_width_ = plain_runs_ + kWideRuns;
      soonest_width_ = plain_runs_ + kLeastRuns;
    } else {
      width_trials_.Open(kWidths, kWidthRounds);
      stage_ = Stage::kTryWidth;
    }
  }
  if (stage_ == Stage::kTryWidth)
    return {
        .what = Turn::What::kTryWidth, .narrow = width_trials_.next() == kNarrow, .judged = true};
  return {.narrow = narrow_, .judged = true};
}

bool RunPolicy::Report(const Turn& turn, double ns) {
  switch (turn.what) {
    case Turn::What::kRun:
      if (turn.judged) Judge(ns);
      return false;
    case Turn::What::kTryWidth:
      width_trials_.Report(ns);
      if (width_trials_.settled()) EndWidthTrials();
      return false;
    case Turn::What::kWarmUp:
      BeginTiming(subject_.widths ? Stage::kTimeWide : Stage::kTimeNarrow);
      return false;
    case Turn::What::kTime:
      least_ns_ = timed_ == 0 ? ns : std::min(least_ns_, ns);
      most_ns_ = timed_ == 0 ? ns : std::max(most_ns_, ns);
      if (!turn.narrow || !subject_.widths) costs_.plain_ns = least_ns_;
      ++timed_;
      if (ns > kLongRunNs || timed_ >= kMostTimedRuns ||
          (timed_ >= kTimedRuns && most_ns_ <= kAgree * least_ns_))
        EndTiming();
      return settled();
    case Turn::What::kTryVariant:
      variant_trials_.Report(ns);
      if (!variant_trials_.settled()) return false;
      Settle(variant_trials_.best());
      return true;
  }
  return false;
}

void RunPolicy::BeginTiming(Stage stage) {
  meter_ = std::make_unique<CostMeter>(subject_.steps);
  stage_ = stage;
  timed_ = 0;
}

// Changes nothing before the graph is made, which may end by an exception.
void RunPolicy::EndTiming() {
  std::vector<float> cost_ns = meter_->CostNs();
  const bool first = stage_ == Stage::kTimeWide || !subject_.widths;
  if (first && !subject_.parts && !PathIsShort(cost_ns)) {
    meter_.reset();
    return Settle(0);
  }
  if (stage_ == Stage::kTimeWide) {
    costs_.wide_ns = std::move(cost_ns);
    return BeginTiming(Stage::kTimeNarrow);
  }
  if (!subject_.widths) costs_.wide_ns = cost_ns;
  costs_.narrow_ns = std::move(cost_ns);
  meter_.reset();
  stage_ = Stage::kPropose;
  proposal_.store(Proposal::kWanted, std::memory_order_release);
}

// Whether lanes could win: they cannot be faster than the longest path, by the steps' costs with
// all threads.
bool RunPolicy::PathIsShort(const std::vector<float>& cost_ns) {
  const UnitGraph units = FormUnits(subject_.graph(), cost_ns, 0);
  subject_.graph = nullptr;
  return units.path_ns <= (1 - kVariantRules.margin) * units.serial_ns;
}

void RunPolicy::Drop(const Turn& turn) {
  if (turn.what == Turn::What::kTryVariant) Settle(0);
}

bool RunPolicy::WantsCandidates(Costs* costs) {
  Proposal wanted = Proposal::kWanted;
  if (proposal_.load(std::memory_order_relaxed) != wanted ||
      !proposal_.compare_exchange_strong(wanted, Proposal::kTaken, std::memory_order_acquire))
    return false;
  *costs = costs_;
  return true;
}

void RunPolicy::Candidates(int count) {
  variants_ = count + 1;
  proposal_.store(Proposal::kMade, std::memory_order_release);
}

void RunPolicy::OpenVariantTrials(int rounds) {
  variant_trials_.Open(variants_, rounds);
  stage_ = Stage::kTryVariants;
  settled_runs_ = 0;
  next_trials_ *= kIntervalGrowth;
  settled_.store(-1, std::memory_order_release);
}

void RunPolicy::Settle(int variant) {
  const bool tried = stage_ == Stage::kTryVariants && variant_trials_.settled();
  // Other load on the machine may have caused the change, so the next trials follow soon.
  if (variant != chosen_ || (tried && variant_trials_.disturbed())) next_trials_ = kFirstInterval;
  if (tried) {
    const double run_ns = variant_trials_.TimeOf(variant);
    const auto most = static_cast<int64_t>(kMostBetweenNs / std::max(run_ns, 1.0));
    soonest_trials_ = std::max(kFirstInterval, variant_trials_.RunsToPayBack());
    next_trials_ = std::max(std::min(next_trials_, most), soonest_trials_);
    // In trials the plain way runs with kernels on all threads, so they say nothing about one
    // thread.
    Expect(variant == 0 && narrow_ ? 0 : run_ns);
  }
  in_a_row_ = !tried ? 0 : variant == chosen_ ? in_a_row_ + 1 : 1;
  chosen_ = variant;
  stage_ = Stage::kSettled;
  least_ns_ = std::numeric_limits<double>::infinity();
  settled_.store(variant, std::memory_order_release);
}

void RunPolicy::Expect(double ns) {
  expected_ns_ = ns;
  slow_runs_ = fast_runs_ = 0;
}

// Whether runs take another time than in the trials, so that new trials may have another result.
bool RunPolicy::TimesHaveChanged() const {
  return slow_runs_ >= kOtherRuns || fast_runs_ >= kOtherRuns;
}

// Records the time of a run outside of trials.
void RunPolicy::Judge(double ns) {
  least_ns_ = std::min(least_ns_, ns);
  if (expected_ns_ == 0) return;
  slow_runs_ = ns > kOtherTime * expected_ns_ ? slow_runs_ + 1 : 0;
  fast_runs_ = kOtherTime * ns < expected_ns_ ? fast_runs_ + 1 : 0;
}

void RunPolicy::EndWidthTrials() {
  narrow_ = width_trials_.best() == kNarrow;
  Expect(width_trials_.TimeOf(narrow_ ? kNarrow : kWide));
  least_ns_ = std::numeric_limits<double>::infinity();
  const int64_t pays_back = width_trials_.RunsToPayBack();
  const int64_t interval = width_trials_.disturbed() ? kLeastRuns
                           : narrow_                 ? kNarrowRuns
                                                     : kWideRuns;
  soonest_width_ = plain_runs_ + std::max(kLeastRuns, pays_back);
  next_width_ = plain_runs_ + std::max(interval, pays_back);
  stage_ = Stage::kSettled;
}

}  // namespace heddle
