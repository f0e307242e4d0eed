#include "scheduler/graph_runner.h"

#include <algorithm>
#include <utility>

namespace heddle {
namespace {

constexpr int kTimedRuns = 3;
constexpr int kTrialRounds = 4;
constexpr size_t kCandidates = 4;
constexpr double kMargin = 0.02;
constexpr double kWorthTrying = 0.97;  // of the plain loop's time, as predicted
// A run that takes longer is disturbed too little to need repeating.
constexpr double kLongRunNs = 50e6;

void Execute(const GraphTask* at, const GraphTask* end) {
  for (; at != end; ++at) at->fn(at->arg);
}

}  // namespace

std::vector<LaneSchedule> ProposeLanes(const StaticGraph& graph, std::span<const float> cost_ns,
                                       int threads, double hand_over_ns, size_t at_most) {
  std::vector<LaneSchedule> found;
  if (threads < 2 || graph.size < 2) return found;
  // What a lane pays for an edge from another one: the other's write and this one's look at it, with
  // some slack, since a lane that comes a little late delays everybody behind it.
  const auto hand_over = static_cast<float>(1.5 * hand_over_ns);
  constexpr float kGroups[] = {4, 0, 10};  // in hand-overs
  for (float group : kGroups) {
    const UnitGraph units = FormUnits(graph, cost_ns, group * hand_over);
    LaneOptions options{.lanes = threads, .hand_over_ns = hand_over};
    if (units.path_ns + options.start_ns > kWorthTrying * units.serial_ns) continue;
    for (bool own : {true, false}) {
      options.prefer_own = own;
      LaneSchedule s = ScheduleLanes(units, options);
      if (s.predicted_ns < kWorthTrying * s.serial_ns) found.push_back(std::move(s));
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const LaneSchedule& a, const LaneSchedule& b) {
    return a.predicted_ns < b.predicted_ns;
  });
  if (found.size() > at_most) found.resize(at_most);
  return found;
}

GraphRunner::GraphRunner(StaticGraph graph, std::span<const GraphTask> tasks, HostPool& pool)
    : graph_(std::move(graph)), tasks_(tasks.begin(), tasks.end()), pool_(pool),
      stage_(pool.threads() > 1 ? Stage::kTiming : Stage::kSettled) {
  if (stage_ == Stage::kTiming) meter_ = std::make_unique<CostMeter>(tasks_.size());
}

void GraphRunner::Run() {
  if (stage_ == Stage::kSettled) [[likely]] {
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
       ProposeLanes(graph_, cost, pool_.threads(), pool_.HandOverNs(), kCandidates)) {
    auto lanes = std::make_unique<Lanes>();
    lanes->schedule = std::move(s);
    lanes->code.reserve(tasks_.size());
    for (uint32_t v : lanes->schedule.order) lanes->code.push_back(tasks_[v]);
    lanes->run = std::make_unique<LaneRun>(lanes->schedule);
    candidates_.push_back(std::move(lanes));
  }
  graph_ = StaticGraph();
  if (candidates_.empty()) return Settle(0);
  trials_ = std::make_unique<Trials>(static_cast<int>(candidates_.size()) + 1, kTrialRounds, kMargin);
  stage_ = Stage::kTrying;
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
  if (way > 0) chosen_ = std::move(candidates_[static_cast<size_t>(way) - 1]);
  candidates_.clear();
  trials_.reset();
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
