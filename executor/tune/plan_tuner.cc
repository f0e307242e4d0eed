#include "executor/tune/plan_tuner.h"

#include <algorithm>
#include <limits>

#include "executor/plan/dependency_graph.h"
#include "scheduler/simulate_lanes.h"
#include "scheduler/units.h"

namespace heddle {
namespace {

constexpr int kTimedRuns = 2;
constexpr int kTrialRounds = 2;
constexpr int kLaterRounds = 1;
// Runs until the first repetition of the trials is kFirstInterval * kIntervalGrowth.
constexpr int64_t kFirstInterval = 64, kIntervalGrowth = 8;
constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
constexpr double kMargin = 0.03;  // by which another plan must be faster than the plain one
// A run this long is disturbed too little to need many repetitions.
constexpr double kLongRunNs = 50e6;

}  // namespace

PlanTuner::PlanTuner(const Plan& base, bool enabled) : base_(base), next_trials_(kNever) {
  if (!enabled || !base.worth_measuring) settled_.store(0, std::memory_order_relaxed);
}

PlanTuner::Turn PlanTuner::Next(bool alone) {
  if (!alone) return {};
  if (const int variant = settled_.load(std::memory_order_acquire); variant >= 0) {
    if (settled_runs_.fetch_add(1, std::memory_order_relaxed) <
        next_trials_.load(std::memory_order_relaxed))
      return {Turn::What::kRun, variant, nullptr};
    std::lock_guard lock(mutex_);
    OpenTrials(kLaterRounds);
  }
  std::lock_guard lock(mutex_);
  switch (stage_) {
    case Stage::kWarmUp:
      return {Turn::What::kWarmUp, 0, nullptr};
    case Stage::kWide:
      return {Turn::What::kTimeWide, 0, meter_.get()};
    case Stage::kNarrow:
      return {Turn::What::kTimeNarrow, 0, meter_.get()};
    case Stage::kProposing:
      return {};
    case Stage::kTrying:
      return {Turn::What::kTry, trials_->next(), nullptr};
  }
  return {};
}

bool PlanTuner::Report(const Turn& turn, double ns) {
  if (turn.what == Turn::What::kRun) return false;
  std::lock_guard lock(mutex_);
  if (settled() || (turn.what == Turn::What::kTry) != (stage_ == Stage::kTrying)) return false;
  const bool enough = ++runs_ >= kTimedRuns || ns > kLongRunNs;
  switch (turn.what) {
    case Turn::What::kRun:
      break;
    case Turn::What::kWarmUp:
      stage_ = Stage::kWide;
      runs_ = 0;
      meter_ = std::make_unique<CostMeter>(base_.blocks[0].instructions.size());
      break;
    case Turn::What::kTimeWide:
      costs_.plain_ns = costs_.plain_ns == 0 ? ns : std::min(costs_.plain_ns, ns);
      if (enough) EndWide();
      break;
    case Turn::What::kTimeNarrow:
      if (!enough) break;
      costs_.narrow_ns = meter_->CostNs();
      meter_.reset();
      stage_ = Stage::kProposing;
      break;
    case Turn::What::kTry:
      trials_->Report(ns);
      if (trials_->settled()) Settle(trials_->best());
      break;
  }
  return settled();
}

// The longest path by what instructions cost with all threads is a bound that lanes can't get
// below.
void PlanTuner::EndWide() {
  const auto& ins = base_.blocks[0].instructions;
  const DependencyGraph dependencies = BuildDependencies(base_, ins);
  costs_.wide_ns = meter_->CostNs();
  const UnitGraph units = FormUnits(dependencies.graph, costs_.wide_ns, 0);
  if (units.path_ns > (1 - kMargin) * units.serial_ns) return Settle(0);
  stage_ = Stage::kNarrow;
  runs_ = 0;
  meter_ = std::make_unique<CostMeter>(ins.size());
}

void PlanTuner::Drop(const Turn& turn) {
  if (turn.what != Turn::What::kTry) return;
  std::lock_guard lock(mutex_);
  if (!settled()) Settle(0);
}

bool PlanTuner::WantsCandidates(Costs* costs) {
  if (settled()) return false;
  std::lock_guard lock(mutex_);
  if (stage_ != Stage::kProposing || asked_) return false;
  asked_ = true;
  *costs = costs_;
  return true;
}

void PlanTuner::Candidates(int count) {
  std::lock_guard lock(mutex_);
  if (count == 0) return Settle(0);
  variants_ = count + 1;
  next_trials_.store(kFirstInterval, std::memory_order_relaxed);
  OpenTrials(costs_.plain_ns > kLongRunNs ? 1 : Trials::RoundsFor(costs_.plain_ns, kTrialRounds));
}

void PlanTuner::OpenTrials(int rounds) {
  trials_ = std::make_unique<Trials>(variants_, rounds, kMargin);
  stage_ = Stage::kTrying;
  settled_runs_.store(0, std::memory_order_relaxed);
  next_trials_.store(next_trials_.load(std::memory_order_relaxed) * kIntervalGrowth,
                     std::memory_order_relaxed);
  settled_.store(-1, std::memory_order_release);
}

void PlanTuner::Settle(int variant) {
  meter_.reset();
  // What other work on the machine made seem faster for a moment is found out soon.
  if (variant != chosen_) next_trials_.store(kFirstInterval, std::memory_order_relaxed);
  chosen_ = variant;
  if (trials_ && trials_->settled())
    next_trials_.store(
        std::max(next_trials_.load(std::memory_order_relaxed), trials_->RunsToPayBack()),
        std::memory_order_relaxed);
  settled_.store(variant, std::memory_order_release);
}

std::vector<bool> FindWide(const LaneSchedule& lanes, const PlanTuner::Costs& costs,
                           double hand_over, std::vector<float>* mixed) {
  constexpr double kTolerance = 0.15, kGain = 0.8;
  constexpr float kLeastNs = 20000;  // waking helpers costs some microseconds
  LaneTimes times;
  SimulateLanes(lanes, costs.narrow_ns, hand_over, &times);
  const std::vector<bool> lonely = FindLonely(lanes, times, kTolerance);
  *mixed = costs.narrow_ns;
  std::vector<bool> wide(lonely.size(), false);
  bool any = false;
  for (size_t p = 0; p < lonely.size(); ++p) {
    const uint32_t v = lanes.order[p];
    if (!lonely[p] || costs.narrow_ns[v] < kLeastNs ||
        costs.wide_ns[v] > kGain * costs.narrow_ns[v])
      continue;
    wide[v] = any = true;
    (*mixed)[v] = costs.wide_ns[v];
  }
  return any ? wide : std::vector<bool>();
}

}  // namespace heddle
