// heddle's scheduler without programs, tensors or plans: a static graph of plain functions, run
// many times in the way that the executor's RunPolicy finds. Its steps are calls, where those of
// the executor are instructions; policy, proposals, lanes and pool are the executor's own.
//
// Ownership: keeps the tasks and a reference to the pool, which must outlive it. Threads: one Run
// at a time.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "benchmarks/scheduling/engine.h"
#include "executor/tune/propose_ways.h"
#include "executor/tune/run_policy.h"
#include "scheduler/host_pool.h"
#include "scheduler/lane_run.h"
#include "scheduler/lane_schedule.h"
#include "scheduler/static_graph.h"

namespace heddle::bench {

class TaskGraph {
 public:
  // Task i is node i; tasks must not throw.
  TaskGraph(StaticGraph graph, std::span<const Task> tasks, HostPool& pool)
      : graph_(std::move(graph)),
        tasks_(tasks.begin(), tasks.end()),
        pool_(pool),
        policy_({.steps = tasks.size(),
                 .graph = [this] { return graph_; },
                 .variants = pool.threads() > 1}) {}
  TaskGraph(const TaskGraph&) = delete;
  TaskGraph& operator=(const TaskGraph&) = delete;

  // Runs every task once, each after its predecessors; blocking.
  void Run() {
    if (RunPolicy::Costs costs; policy_.WantsCandidates(&costs)) Propose(costs);
    const RunPolicy::Turn turn = policy_.Next(true);
    if (!turn.judged) [[likely]] {
      RunVariant(turn.variant);
      return;
    }
    double ns = 0;
    if (turn.meter != nullptr) {
      ns = RunTimed(turn.meter);
    } else {
      const uint64_t start = NowNs();
      RunVariant(turn.variant);
      ns = static_cast<double>(NowNs() - start);
    }
    policy_.Report(turn, ns);
  }
  // The way to run has been found (it may be questioned again later).
  bool settled() const { return policy_.settled(); }

 private:
  struct Lanes {
    explicit Lanes(LaneSchedule s) : schedule(std::move(s)), run(schedule) {}
    const LaneSchedule schedule;
    std::vector<Task> code;  // in the schedule's order
    LaneRun run;
  };

  static void Execute(const Task* at, const Task* end) {
    for (; at != end; ++at) (*at)();
  }
  void RunVariant(int variant) {
    if (variant == 0)
      Execute(tasks_.data(), tasks_.data() + tasks_.size());
    else
      RunLanes(*variants_[static_cast<size_t>(variant) - 1]);
  }
  double RunTimed(CostMeter* meter) {
    meter->Begin();
    for (size_t i = 0; i < tasks_.size(); ++i) {
      tasks_[i]();
      meter->Lap(i);
    }
    return meter->End();
  }
  void RunLanes(Lanes& lanes) {
    lanes.run.Begin();
    const Task* code = lanes.code.data();
    auto body = [code](uint32_t, uint32_t begin, uint32_t end) {
      Execute(code + begin, code + end);
      return true;
    };
    pool_.Run([&](int participant) { lanes.run.Participate(participant, body); },
              lanes.schedule.lanes);
  }
  void Propose(const RunPolicy::Costs& costs) {
    for (LaneWay& way : ProposeLaneWays(graph_, costs, pool_.threads(), pool_.HandOverNs())) {
      auto& lanes = variants_.emplace_back(std::make_unique<Lanes>(std::move(way.lanes)));
      lanes->code.reserve(tasks_.size());
      for (const uint32_t v : lanes->schedule.order) lanes->code.push_back(tasks_[v]);
    }
    graph_ = StaticGraph();
    policy_.Candidates(static_cast<int>(variants_.size()));
  }

  StaticGraph graph_;  // until variants were proposed
  const std::vector<Task> tasks_;
  HostPool& pool_;
  std::vector<std::unique_ptr<Lanes>> variants_;
  RunPolicy policy_;
};

}  // namespace heddle::bench
