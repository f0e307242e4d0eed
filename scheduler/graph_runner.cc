#include "scheduler/graph_runner.h"

#include <algorithm>
#include <utility>

#include "scheduler/propose_lanes.h"

namespace heddle {
namespace {

constexpr int kTimedRuns = 3;
constexpr int kTrialRounds = 2;
constexpr int kLaterRounds = 1;
// Runs until the first repetition of the trials is kFirstInterval * kIntervalGrowth.
constexpr int64_t kFirstInterval = 64, kIntervalGrowth = 8;
constexpr size_t kCandidates = 4;
// A lane that comes a little late delays everybody behind it: hand-overs are priced higher.
constexpr double kSlack = 1.5;
// A second processor must be worth it, also when a run is disturbed that was not while it was
// tried.
constexpr double kMargin = 0.05;
// A run that takes longer is disturbed too little to need repeating.
constexpr double kLongRunNs = 50e6;

void Execute(const GraphTask* at, const GraphTask* end) {
  for (; at != end; ++at) at->fn(at->arg);
}

}  // namespace

GraphRunner::GraphRunner(StaticGraph graph, std::span<const GraphTask> tasks, HostPool& pool)
    : graph_(std::move(graph)),
      tasks_(tasks.begin(), tasks.end()),
      pool_(pool),
      stage_(pool.threads() > 1 ? Stage::kTiming : Stage::kSettled),
      settled_(stage_ == Stage::kSettled),
      next_trials_(kFirstInterval) {
  if (stage_ == Stage::kTiming) meter_ = std::make_unique<CostMeter>(tasks_.size());
}

void GraphRunner::Run() {
  if (stage_ == Stage::kSettled) [[likely]] {
    if (!candidates_.empty() && ++runs_ >= next_trials_) OpenTrials(kLaterRounds);
    if (chosen_)
      RunLanes(*chosen_);
    else
      RunFlat();
  } else if (stage_ == Stage::kTiming) {
    RunTimed();
  } else {
    RunTrial();
  }
}

void GraphRunner::RunFlat() { Execute(tasks_.data(), tasks_.data() + tasks_.size()); }

void GraphRunner::RunTimed() {
  meter_->Begin();
  for (size_t i = 0; i < tasks_.size(); ++i) {
    tasks_[i].fn(tasks_[i].arg);
    meter_->Lap(i);
  }
  const double ns = meter_->End();
  if (++timed_ == kTimedRuns || (timed_ > 1 && ns > kLongRunNs)) MakeCandidates();
}

void GraphRunner::MakeCandidates() {
  const std::vector<float> cost = meter_->CostNs();
  meter_.reset();
  for (LaneSchedule& s :
       ProposeLanes(graph_, cost, pool_.threads(), kSlack * pool_.HandOverNs(), kCandidates)) {
    auto lanes = std::make_unique<Lanes>();
    lanes->schedule = std::move(s);
    lanes->code.reserve(tasks_.size());
    for (uint32_t v : lanes->schedule.order) lanes->code.push_back(tasks_[v]);
    lanes->run = std::make_unique<LaneRun>(lanes->schedule);
    candidates_.push_back(std::move(lanes));
  }
  graph_ = StaticGraph();
  if (candidates_.empty()) return Settle(0);
  double plain_ns = 0;
  for (float ns : cost) plain_ns += ns;
  OpenTrials(Trials::RoundsFor(plain_ns, kTrialRounds));
}

void GraphRunner::OpenTrials(int rounds) {
  trials_ = std::make_unique<Trials>(static_cast<int>(candidates_.size()) + 1, rounds, kMargin);
  stage_ = Stage::kTrying;
  runs_ = 0;
  next_trials_ *= kIntervalGrowth;
}

void GraphRunner::RunTrial() {
  const int way = trials_->next();
  const uint64_t start = NowNs();
  if (way == 0)
    RunFlat();
  else
    RunLanes(*candidates_[static_cast<size_t>(way) - 1]);
  trials_->Report(static_cast<double>(NowNs() - start));
  if (trials_->settled()) Settle(trials_->best());
}

void GraphRunner::Settle(int way) {
  chosen_ = way > 0 ? candidates_[static_cast<size_t>(way) - 1].get() : nullptr;
  if (trials_) next_trials_ = std::max(next_trials_, trials_->RunsToPayBack());
  trials_.reset();
  settled_ = true;
  stage_ = Stage::kSettled;
}

void GraphRunner::RunLanes(Lanes& lanes) {
  lanes.run->Begin();
  const GraphTask* code = lanes.code.data();
  auto body = [code](uint32_t, uint32_t begin, uint32_t end) {
    Execute(code + begin, code + end);
    return true;
  };
  pool_.Run([&](int participant) { lanes.run->Participate(participant, body); },
            lanes.schedule.lanes);
}

}  // namespace heddle
