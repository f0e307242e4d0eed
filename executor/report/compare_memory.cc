// The memory of one program under the schedules whose memory is planned ahead of time.
#include "executor/report/memory_report.h"

namespace heddle {
namespace {

double MakespanUs(const Plan& plan) {
  double ns = 0;
  for (const Instruction& in : plan.blocks[0].instructions) ns += static_cast<double>(in.cost_ns);
  return 1e-3 * (plan.lanes ? plan.lanes->predicted_ns : ns);
}

}  // namespace

Result<std::vector<MemoryReport::Way>> CompareMemory(
    PlanRequest request, std::shared_ptr<const Plan> twin,
    FunctionRef<Result<std::shared_ptr<const Plan>>(const PlanRequest&)> build) {
  struct {
    const char* name;
    Dispatch dispatch;
    Reuse reuse;
  } constexpr kWays[] = {{"serial", Dispatch::kSerial, Reuse::kOrdered},
                         {"lanes", Dispatch::kLanes, Reuse::kOrdered},
                         {"edges", Dispatch::kLanes, Reuse::kEdges}};
  request.twin = std::move(twin);
  request.ask_worth = false;
  std::vector<MemoryReport::Way> ways;
  size_t bound = 0;
  for (const auto& way : kWays) {
    request.dispatch = way.dispatch;
    request.reuse = way.reuse;
    HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<const Plan> plan, build(request));
    if (ways.empty()) bound = plan->arena_bound;
    const double over =
        bound == 0 ? 1 : static_cast<double>(plan->arena_bytes) / static_cast<double>(bound);
    ways.push_back(
        {way.name, plan->arena_bytes, over, plan->stats.memory_edges, MakespanUs(*plan)});
  }
  return ways;
}

}  // namespace heddle
