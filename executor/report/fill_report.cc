#include "executor/report/fill_report.h"

namespace heddle::internal {

void FillReport(RunState& run, bool alone, double ns, RunReport* report) {
  const Plan& plan = run.plan();
  *report = RunReport();
  report->run_us = ns * 1e-3;
  report->dispatch = "serial";
  for (const Instruction& in : plan.blocks[0].instructions) report->work_us += in.cost_ns * 1e-3;
  run.control().FillTrace(report);
  if (plan.dispatch == Dispatch::kDevice) report->dispatch = run.replayed() ? "graph" : "device";
  if (!alone) return;
  if (plan.dispatch == Dispatch::kQueue) report->dispatch = "queue";
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
