#include "executor/report/fill_report.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "executor/plan/device_plan.h"
#include "executor/report/trace_story.h"

namespace heddle::internal {
namespace {

// The number of threads among which the run's instructions were shared out.
int ThreadsOf(const Plan& plan, bool shared, int threads) {
  if (!shared) return 1;
  switch (plan.dispatch) {
    case Dispatch::kLanes:
      return plan.lanes->lanes;
    case Dispatch::kQueue:
      return threads;
    case Dispatch::kSerial:
      return std::max(1, plan.body_lanes);
    case Dispatch::kDevice:
      return std::min(threads, static_cast<int>(plan.device->task_streams) + 1);
    default:
      return 1;
  }
}

const std::vector<TraceEvent>& EventsOf(TraceStory& s) { return s.events(); }
const std::vector<TraceSpan>& SpansOf(TraceStory& s) { return s.spans(); }
const std::vector<MemorySample>& MemoryOf(TraceStory& s) { return s.memory(); }

}  // namespace

void FillReport(RunState& run, bool shared, int threads, const std::vector<std::string>& places,
                double ns, RunReport* report) {
  const Plan& plan = run.plan();
  *report = RunReport();
  report->run_us = ns * 1e-3;
  report->dispatch = "serial";
  for (const Instruction& in : plan.blocks[0].instructions) report->work_us += in.cost_ns * 1e-3;
  report->threads = ThreadsOf(plan, shared, threads);
  if (auto trace = run.control().TakeTrace(); trace != nullptr) {
    // The run's time as events and spans fill it: it may differ from `ns`, since a thread may have
    // lost its processor between two readings of the clock.
    report->run_us = static_cast<double>(trace->end_ns - trace->start_ns) * 1e-3;
    auto story =
        std::make_shared<TraceStory>(std::move(trace), run.shared_plan(), report->threads, places);
    report->events = {story, &EventsOf};
    report->spans = {story, &SpansOf};
    report->memory = {std::move(story), &MemoryOf};
  }
  if (plan.dispatch == Dispatch::kDevice) report->dispatch = run.replayed() ? "graph" : "device";
  if (!shared) return;
  if (plan.dispatch == Dispatch::kQueue) report->dispatch = "queue";
  if (plan.dispatch == Dispatch::kSerial) report->lanes = plan.body_lanes;  // of a sub-block
  if (plan.dispatch != Dispatch::kLanes) return;
  const LaneStats stats = run.lane_run()->stats();
  report->dispatch = "lanes";
  report->lanes = plan.lanes->lanes;
  report->waits = stats.waits;
  report->switches = stats.switches;
  report->parks = stats.parks;
  report->spun_us = static_cast<double>(stats.spun_ns) * 1e-3;
  report->parked_us = static_cast<double>(stats.parked_ns) * 1e-3;
  report->work_us = plan.lanes->serial_ns * 1e-3;
  report->critical_path_us = plan.lanes->path_ns * 1e-3;
}

}  // namespace heddle::internal
