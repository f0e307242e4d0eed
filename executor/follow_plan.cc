#include "executor/follow_plan.h"

#include <xxhash.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/error.h"
#include "executor/plan/dependency_graph.h"
#include "executor/plan/memory_edges.h"
#include "executor/report/describe_plan.h"
#include "executor/report/match_plan.h"

namespace heddle::internal {
namespace {

Status Refused(const std::string& why) {
  return InvalidArgument("the plan that is to be followed cannot be: ", why);
}

Result<Dispatch> DispatchOf(const PlanDescription& wanted, const PlanRequest& request) {
  const std::string& name = wanted.dispatch;
  const bool device = !request.devices.empty();
  if (name == "device" && !device) return Refused("it has a device, and the executor has none");
  if (name != "device" && device) return Refused("the executor has a device, and it has none");
  if (name == "device") return Dispatch::kDevice;
  if (name == "serial") return Dispatch::kSerial;
  if (name == "queue" && request.threads > 1) return Dispatch::kQueue;
  if (name == "lanes" && wanted.lanes >= 1 && wanted.lanes <= request.threads)
    return Dispatch::kLanes;
  if (name != "queue" && name != "lanes") return Refused("there is no dispatch '" + name + "'");
  return Refused(StrCat("it is for ", name == "lanes" ? wanted.lanes : 2,
                        " threads, and the executor has ", request.threads));
}

// The implementations that the description names, by block and position of their operators.
std::shared_ptr<const std::map<std::pair<int, int>, ForcedImplementations>> GivenOf(
    const PlanDescription& wanted) {
  auto given = std::make_shared<std::map<std::pair<int, int>, ForcedImplementations>>();
  for (const auto& in : wanted.instructions)
    for (const ImplementationChoice& choice : in.choices) {
      auto& families = (*given)[{in.block, in.position}].families;
      auto at = std::find_if(families.begin(), families.end(),
                             [&](const auto& family) { return family.first == choice.family; });
      if (at == families.end()) at = families.insert(at, {choice.family, {}});
      at->second.push_back(choice.chosen);
    }
  return given;
}

// Takes the lanes of the description for the instructions of `serial`.
Status TakeLanes(const PlanDescription& wanted, const Plan& serial, PlanRequest* request) {
  const auto& ins = serial.blocks[0].instructions;
  std::map<int, uint32_t> node_of;  // by position in the program
  for (uint32_t v = 0; v < ins.size(); ++v) node_of[ins[v].ir_op] = v;
  GivenLanes given;
  given.lanes = static_cast<uint32_t>(wanted.lanes);
  request->wide.assign(ins.size(), false);
  for (const auto& in : wanted.instructions) {
    if (in.block != 0) continue;
    const auto at = node_of.find(in.position);
    if (at == node_of.end())
      return Refused(StrCat("it has operator ", in.position, " (", in.op,
                            "), which this program does not execute"));
    if (in.lane < 0 || in.lane >= wanted.lanes || in.task < 0)
      return Refused(StrCat("operator ", in.position, " (", in.op, ") has no lane"));
    given.order.push_back(at->second);
    given.lane.push_back(static_cast<uint32_t>(in.lane));
    given.segment.push_back(static_cast<uint32_t>(in.task));
    request->wide[at->second] = in.mode == "wide";
  }
  for (int position : wanted.order) {
    if (position < 0 || static_cast<size_t>(position) >= given.order.size())
      return Refused("its order names a step that there is not");
    given.walk.push_back(given.order[static_cast<size_t>(position)]);
  }
  // Waits beyond those that the program's values require.
  std::vector<OrderEdge> edges;
  for (const auto& [from, to] : wanted.dependencies) {
    const auto count = static_cast<int>(given.order.size());
    if (from < 0 || to < 0 || from >= count || to >= count)
      return Refused("its edges name a step that there is not");
    const uint32_t u = given.order[static_cast<size_t>(from)],
                   v = given.order[static_cast<size_t>(to)];
    if (given.lane[static_cast<size_t>(from)] != given.lane[static_cast<size_t>(to)] && u < v)
      edges.emplace_back(u, v);
  }
  StaticGraph graph = BuildDependencies(serial, ins).graph;
  if (!edges.empty()) graph = AddEdges(graph, edges);
  std::optional<LaneSchedule> lanes = RestoreLanes(graph, given);
  if (!lanes) return Refused("its lanes are no order of this program's instructions");
  for (const Instruction& in : ins) lanes->serial_ns += in.cost_ns;
  lanes->predicted_ns = lanes->serial_ns;
  request->lanes = std::make_shared<const LaneSchedule>(*std::move(lanes));
  return Status::Ok();
}

}  // namespace

std::string MachineText(const Machine* machine) {
  const Machine& m = MachineOr(machine);
  constexpr std::pair<unsigned, const char*> kSets[] = {{kAvx2, "avx2"},
                                                        {kFma, "fma"},
                                                        {kAvx512, "avx512"},
                                                        {kAvx512Vnni, "avx512_vnni"},
                                                        {kAvx512Bf16, "avx512_bf16"},
                                                        {kAvx512Fp16, "avx512_fp16"},
                                                        {kAmxBf16, "amx_bf16"},
                                                        {kAmxInt8, "amx_int8"}};
  std::string text = m.name + ":";
  for (const auto& [set, name] : kSets)
    if (m.has(set)) text += std::string(" ") + name;
  return StrCat(text, ", caches ", m.l1_bytes, " ", m.l2_bytes, " ", m.l3_bytes);
}

uint64_t HashOf(const PlanDescription& plan) {
  std::string all = StrCat(plan.version, '\0', plan.program_hash, '\0', plan.machine, '\0',
                           plan.dispatch, '\0', plan.lanes);
  for (const auto& in : plan.instructions)
    all += StrCat('\0', in.block, ' ', in.position, ' ', in.mode, ' ', in.lane, ' ', in.task, ' ',
                  in.implementation);
  for (int i : plan.order) all += StrCat(' ', i);
  return XXH64(all.data(), all.size(), 0);
}

Result<std::shared_ptr<const Plan>> BuildAsGiven(
    PlanRequest request, const PlanDescription& wanted, const PlanDescription& here,
    const std::vector<std::string>& places,
    FunctionRef<Result<std::shared_ptr<const Plan>>(const PlanRequest&)> build) {
  HEDDLE_RETURN_IF_ERROR(CheckOrigin(wanted, here));
  HEDDLE_ASSIGN_OR_RETURN(request.dispatch, DispatchOf(wanted, request));
  request.ask_worth = false;
  request.given = GivenOf(wanted);
  request.body_lanes = std::any_of(wanted.instructions.begin(), wanted.instructions.end(),
                                   [](const auto& in) { return in.block != 0 && in.lane >= 0; });
  if (request.dispatch == Dispatch::kLanes) {
    PlanRequest serial = request;
    serial.dispatch = Dispatch::kSerial;
    serial.spoil = nullptr;
    HEDDLE_ASSIGN_OR_RETURN(request.twin, build(serial));
    HEDDLE_RETURN_IF_ERROR(TakeLanes(wanted, *request.twin, &request));
  }
  HEDDLE_ASSIGN_OR_RETURN(std::shared_ptr<const Plan> plan, build(request));
  HEDDLE_RETURN_IF_ERROR(CheckSamePlan(wanted, DescribePlan(*plan, places)));
  return plan;
}

}  // namespace heddle::internal
