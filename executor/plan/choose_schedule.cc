// Estimates costs and chooses the dispatch by them: one instruction after another, lanes, or tasks
// for a queue. With the first, a sub-block may have lanes of its own.
#include <algorithm>

#include "core/interrupts.h"
#include "core/shape_context.h"
#include "executor/plan/block_access.h"
#include "executor/plan/calls/plan_calls.h"
#include "executor/plan/dependency_graph.h"
#include "executor/plan/memory_edges.h"
#include "executor/plan/plan_draft.h"

namespace heddle {
namespace {

constexpr double kCallNs = 30;       // calling a kernel on tiny operands
constexpr double kNsPerByte = 0.05;  // touching memory
constexpr float kUnknownNs = 2000;   // an instruction with operands of unknown size

bool HasKnownCost(const Instruction& in) {
  return in.mode == Instruction::Mode::kStatic || in.mode == Instruction::Mode::kReplace;
}

// Whether several threads could be faster than one, by the estimated costs. This may be generous,
// since runs are timed before anything is changed.
bool WorthMeasuring(const UnitGraph& units) {
  constexpr double kWidth = 1.15;        // work over longest path
  constexpr double kLeastWorkNs = 2000;  // starting other threads costs as much
  return units.serial_ns > kWidth * units.path_ns && units.serial_ns > kLeastWorkNs;
}

std::vector<float> Costs(const std::vector<Instruction>& ins) {
  std::vector<float> cost;
  cost.reserve(ins.size());
  for (const Instruction& in : ins) cost.push_back(in.cost_ns);
  return cost;
}

// Whether lanes made for the twin's instructions fit these. They may not if parameters, and with
// them what is computed while planning, have changed since.
bool SameInstructions(const Plan& twin, const std::vector<Instruction>& ins) {
  using Mode = Instruction::Mode;
  // kWhole occurs in finished plans only.
  const auto mode_of = [](const Instruction& in) {
    return in.mode == Mode::kWhole ? Mode::kStatic : in.mode;
  };
  const auto& others = twin.blocks[0].instructions;
  return std::equal(ins.begin(), ins.end(), others.begin(), others.end(),
                    [&](const Instruction& a, const Instruction& b) {
                      return a.ir_op == b.ir_op && mode_of(a) == mode_of(b);
                    });
}

// Stores the instructions lane after lane, and returns an order of them for one thread.
std::vector<uint32_t> PutInLanes(const LaneSchedule& lanes,
                                 std::vector<Instruction>* instructions) {
  auto& ins = *instructions;
  std::vector<Instruction> ordered;
  ordered.reserve(ins.size());
  std::vector<uint32_t> position(ins.size());
  for (uint32_t v : lanes.order) {
    LookForInterrupt();
    position[v] = static_cast<uint32_t>(ordered.size());
    ordered.push_back(std::move(ins[v]));
  }
  ins = std::move(ordered);
  std::vector<uint32_t> walk;
  walk.reserve(ins.size());
  for (uint32_t v : lanes.walk) walk.push_back(position[v]);
  return walk;
}

void TakeLanes(std::shared_ptr<const LaneSchedule> lanes, Plan* plan) {
  plan->serial_order = PutInLanes(*lanes, &plan->blocks[0].instructions);
  plan->dispatch = Dispatch::kLanes;
  plan->stats.tasks = static_cast<int>(lanes->segments.size());
  plan->lanes = std::move(lanes);
}

constexpr float kGroupNs = 600;  // some hand-overs; costs are estimates

// Makes lanes for the sub-blocks that gain by them. All threads meet at the beginning and at the
// end of each run of such a block. A block inside one with lanes gets none, since the threads are
// in use.
class BodyLanes {
 public:
  // `take` false: Run only finds out which blocks would get lanes.
  BodyLanes(PlanDraft& d, bool take) : d_(d), plan_(*d.plan), take_(take), access_(plan_) {}

  // The work of the blocks with lanes, in ns, assuming some iterations per loop; 0: there are none.
  double Run() {
    if (d_.CompilesBodies()) Visit(0);
    return work_ns_;
  }

 private:
  void Visit(int runner) {
    std::vector<int> bodies;
    for (const Instruction& in : plan_.blocks[static_cast<size_t>(runner)].instructions)
      for (int body : BlocksOf(plan_, in))
        if (d_.run_once[static_cast<size_t>(body)]) bodies.push_back(body);
    for (int body : bodies)
      if (!Share(body)) Visit(body);
  }

  bool Share(int body) {
    BlockPlan& block = plan_.blocks[static_cast<size_t>(body)];
    auto& ins = block.instructions;
    std::vector<float> cost = Costs(ins);
    double known_ns = 0;
    for (size_t i = 0; i < ins.size(); ++i) {
      if (ins[i].once) cost[i] = 0;
      if (HasKnownCost(ins[i])) known_ns += static_cast<double>(cost[i]);
    }
    if (known_ns < kLeastWorkNs) return false;
    const UnitGraph units = FormUnits(BuildDependencies(plan_, ins, access_).graph, cost, kGroupNs);
    if (units.serial_ns < kWidth * units.path_ns) return false;
    auto lanes = std::make_shared<LaneSchedule>(
        ScheduleLanes(units, {.lanes = d_.request.threads, .start_ns = kStartNs}));
    if (lanes->predicted_ns > kPromising * units.serial_ns) return false;
    constexpr double kIterations = 8;
    work_ns_ += kIterations * units.serial_ns;
    if (!take_) return true;
    block.serial_order = PutInLanes(*lanes, &ins);
    std::stable_partition(block.serial_order.begin(), block.serial_order.end(),
                          [&](uint32_t i) { return ins[i].once; });
    plan_.body_lanes = std::max(plan_.body_lanes, lanes->lanes);
    block.lanes = std::move(lanes);
    return true;
  }

  static constexpr double kLeastWorkNs = 5000, kWidth = 1.15, kPromising = 0.9;
  static constexpr float kStartNs = 1500;

  PlanDraft& d_;
  Plan& plan_;
  const bool take_;
  BlockAccess access_;  // stays valid when a block's instructions are reordered
  double work_ns_ = 0;
};

// Whether block 0 should leave the threads to its sub-blocks, since these have most of the work.
bool BodiesFirst(PlanDraft& d, const UnitGraph& units) {
  const double work_ns = BodyLanes(d, false).Run();
  return work_ns > (WorthMeasuring(units) ? units.serial_ns : 0);
}

// Sorts the instructions by priority as far as their dependencies allow. Those that only a loop's
// first iteration executes stay in front.
void PutInOrderOfPriority(const Plan& plan, BlockAccess& access, std::vector<Instruction>* ins) {
  if (PrioritiesOf(plan, *ins).empty()) return;
  std::vector<Instruction> ordered;
  ordered.reserve(ins->size());
  for (uint32_t i : OrderByPriority(BuildDependencies(plan, *ins, access).graph))
    ordered.push_back(std::move((*ins)[i]));
  std::stable_partition(ordered.begin(), ordered.end(),
                        [](const Instruction& in) { return in.once; });
  *ins = std::move(ordered);
}

}  // namespace

float EstimateCost(const PlanDraft& d, const Instruction& in) {
  const OpDef& def = *in.op.def;
  if (!HasKnownCost(in)) return kUnknownNs;
  if (def.cost() != nullptr) {
    ShapeContext ctx(in.op, d.frame.data());
    return static_cast<float>(def.cost()(ctx));
  }
  double bytes = 0;
  for (const auto* list : {&in.op.in, &in.op.out})
    for (uint32_t s : *list)
      if (s != kNoSlot && d.plan->slots[s].is_static)
        bytes += static_cast<double>(d.plan->slots[s].bytes());
  return static_cast<float>(kCallNs + kNsPerByte * bytes);
}

void ChooseSchedule(PlanDraft& d) {
  Plan& plan = *d.plan;
  auto& ins = plan.blocks[0].instructions;
  for (BlockPlan& block : plan.blocks)
    for (Instruction& in : block.instructions) in.cost_ns = EstimateCost(d, in);
  SumCallCosts(plan);
  plan.stats.tasks = 1;
  if (d.request.dispatch == Dispatch::kDevice) return;
  BlockAccess access(plan);
  for (BlockPlan& block : plan.blocks) PutInOrderOfPriority(plan, access, &block.instructions);
  if (d.request.body_lanes) BodyLanes(d, true).Run();
  if (d.request.dispatch == Dispatch::kSerial && !d.request.ask_worth) return;
  if (d.request.lanes) {
    if (SameInstructions(*d.request.twin, ins)) TakeLanes(d.request.lanes, &plan);
    return;
  }
  d.BeginStage("dependencies");
  DependencyGraph dependencies = BuildDependencies(plan, ins);
  plan.stats.dependencies_found = dependencies.found;
  plan.stats.dependencies = dependencies.graph.pred.size();
  if (!d.request.order_edges.empty()) {
    dependencies.graph = AddEdges(dependencies.graph, d.request.order_edges);
    plan.stats.memory_edges = static_cast<int>(d.request.order_edges.size());
  }
  d.BeginStage("tasks");
  const std::vector<float> cost = Costs(ins);
  const bool lanes = d.request.dispatch == Dispatch::kLanes;
  UnitGraph units = FormUnits(dependencies.graph, cost, lanes ? kGroupNs : 0);
  if (d.request.dispatch == Dispatch::kSerial) {
    plan.worth_body_lanes = BodyLanes(d, false).Run() > 0;
    plan.worth_measuring = plan.worth_body_lanes || WorthMeasuring(units);
  } else if (lanes && BodiesFirst(d, units)) {
    BodyLanes(d, true).Run();
  } else if (lanes) {
    d.BeginStage("lanes");
    const LaneOptions options{.lanes = d.request.threads};
    TakeLanes(std::make_shared<LaneSchedule>(ScheduleLanes(units, options)), &plan);
  } else {
    plan.dispatch = Dispatch::kQueue;
    plan.shuffle_seed = d.request.shuffle_seed;
    plan.stats.tasks = static_cast<int>(units.size());
    plan.tasks = std::move(units);
  }
}

}  // namespace heddle
