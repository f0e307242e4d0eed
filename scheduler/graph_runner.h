// GraphRunner: a static graph of plain functions, run many times. The scheduler without programs,
// tensors or plans; the executor uses the same parts for its instructions.
//
// How it runs is found out by running: the first runs go one task after another and are timed, then
// lanes are scheduled from the measured costs and tried against the plain loop, and the fastest way
// is kept. Since the machine may have been busy then, the trial is repeated after some hundred
// runs, and after ever more; never so often that trying takes more than a fiftieth of the time.
//
// Ownership: keeps the tasks and a reference to the pool, which must outlive it. Threads: one Run
// at a time.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "scheduler/cost_meter.h"
#include "scheduler/host_pool.h"
#include "scheduler/lane_run.h"
#include "scheduler/lane_schedule.h"
#include "scheduler/static_graph.h"
#include "scheduler/trials.h"

namespace heddle {

struct GraphTask {
  void (*fn)(void*);  // must not throw
  void* arg;
};

class GraphRunner {
 public:
  // Task i is node i. The graph is copied only as far as it is still needed.
  GraphRunner(StaticGraph graph, std::span<const GraphTask> tasks, HostPool& pool);

  // Runs every task once, each after its predecessors; blocking.
  void Run();
  // The way to run has been found (it may be questioned again later).
  bool settled() const { return settled_; }
  // The lanes in use; nullptr: the plain loop.
  const LaneSchedule* lanes() const { return chosen_ ? &chosen_->schedule : nullptr; }
  const LaneRun* last_run() const { return chosen_ ? chosen_->run.get() : nullptr; }

 private:
  enum class Stage { kTiming, kTrying, kSettled };
  struct Lanes {
    LaneSchedule schedule;
    std::vector<GraphTask> code;  // in the schedule's order
    std::unique_ptr<LaneRun> run;
  };
  void RunFlat();
  void RunTimed();
  void RunLanes(Lanes& lanes);
  void RunTrial();
  void MakeCandidates();
  void Settle(int way);
  void OpenTrials(int rounds);

  StaticGraph graph_;
  std::vector<GraphTask> tasks_;
  HostPool& pool_;
  Stage stage_;
  std::unique_ptr<CostMeter> meter_;
  int timed_ = 0;
  std::vector<std::unique_ptr<Lanes>> candidates_;
  std::unique_ptr<Trials> trials_;
  Lanes* chosen_ = nullptr;
  bool settled_;
  int64_t runs_ = 0, next_trials_;  // since the last trials
};

}  // namespace heddle
