// Costs, and from them: one instruction after another, or tasks side by side.
#include <algorithm>

#include "executor/dependency_graph.h"
#include "executor/plan_draft.h"

namespace heddle {
namespace {

constexpr double kCallNs = 30;              // calling a kernel on tiny operands
constexpr double kNsPerByte = 0.05;         // touching memory
constexpr double kUnknownNs = 2000;         // operands of unknown size
constexpr double kHandOverNs = 2000;        // what starting another thread's task costs
constexpr double kSplitsItselfNs = 150000;  // kernels above this use all threads by themselves

double EstimateCost(const PlanDraft& d, const Instruction& in) {
  const OpDef& def = *in.op.def;
  if (in.mode != Instruction::Mode::kStatic) return kUnknownNs;
  if (def.cost() != nullptr) {
    ShapeContext ctx(in.op, d.frame.data());
    return def.cost()(ctx);
  }
  double bytes = 0;
  for (const auto* list : {&in.op.in, &in.op.out})
    for (uint32_t s : *list)
      if (s != kNoSlot) bytes += static_cast<double>(d.plan->slots[s].bytes());
  return kCallNs + kNsPerByte * bytes;
}

struct Load {
  double total = 0, critical = 0, splitting = 0;
};

// Work, longest path, and the part of the work in kernels that use all threads on their own.
Load Measure(const std::vector<Instruction>& ins, const StaticGraph& g,
              std::vector<double>* remaining) {
  Load s;
  remaining->assign(ins.size(), 0);
  for (size_t i = ins.size(); i-- > 0;) {
    double rest = 0;
    for (uint32_t e = g.succ_begin[i]; e < g.succ_begin[i + 1]; ++e)
      rest = std::max(rest, (*remaining)[g.succ[e]]);
    (*remaining)[i] = rest + ins[i].cost_ns;
    s.total += ins[i].cost_ns;
    s.critical = std::max(s.critical, (*remaining)[i]);
    if (ins[i].cost_ns > kSplitsItselfNs) s.splitting += ins[i].cost_ns;
  }
  return s;
}

bool WorthSharing(const Load& s, size_t instructions) {
  const double width = s.total / std::max(1.0, s.critical);
  const double mean = s.total / static_cast<double>(std::max<size_t>(1, instructions));
  return width >= 1.5 && mean >= kHandOverNs && s.splitting < 0.5 * s.total;
}

// Tasks: maximal chains, in which only the first instruction waits for others.
void FormTasks(const std::vector<Instruction>& ins, const StaticGraph& g,
               const std::vector<double>& remaining, TaskGraph* t) {
  const auto n = static_cast<uint32_t>(ins.size());
  const auto in_degree = [&](uint32_t i) { return g.pred_begin[i + 1] - g.pred_begin[i]; };
  std::vector<uint32_t> task_of(n, kNoSlot);
  for (uint32_t i = 0; i < n; ++i) {
    if (task_of[i] != kNoSlot) continue;
    const auto task = static_cast<uint32_t>(t->in_degree.size());
    t->member_begin.push_back(static_cast<uint32_t>(t->members.size()));
    t->in_degree.push_back(in_degree(i));
    t->priority.push_back(remaining[i]);
    if (in_degree(i) == 0) t->roots.push_back(task);
    for (uint32_t at = i;;) {
      task_of[at] = task;
      t->members.push_back(at);
      if (g.succ_begin[at + 1] - g.succ_begin[at] != 1) break;
      const uint32_t next = g.succ[g.succ_begin[at]];
      if (in_degree(next) != 1) break;
      at = next;
    }
  }
  t->member_begin.push_back(static_cast<uint32_t>(t->members.size()));
  t->successor_begin.push_back(0);
  for (int k = 0; k < t->size(); ++k) {
    const uint32_t last = t->members[t->member_begin[k + 1] - 1];
    for (uint32_t e = g.succ_begin[last]; e < g.succ_begin[last + 1]; ++e)
      t->successors.push_back(task_of[g.succ[e]]);
    t->successor_begin.push_back(static_cast<uint32_t>(t->successors.size()));
  }
}

}  // namespace

void ChooseSchedule(PlanDraft& d) {
  Plan& plan = *d.plan;
  auto& ins = plan.blocks[0].instructions;
  for (Instruction& in : ins) in.cost_ns = EstimateCost(d, in);
  plan.stats.tasks = 1;
  if (d.request.schedule == Schedule::kSerial || ins.size() < 2) return;
  if (d.request.schedule == Schedule::kAuto && d.request.threads == 1) return;
  d.BeginStage("dependencies");
  const DependencyGraph dependencies = BuildDependencies(plan, ins);
  const StaticGraph& g = dependencies.graph;
  plan.stats.dependencies_found = dependencies.found;
  plan.stats.dependencies = g.pred.size();
  d.BeginStage("tasks");
  std::vector<double> remaining;
  const Load load = Measure(ins, g, &remaining);
  plan.parallel = d.request.schedule == Schedule::kParallel || WorthSharing(load, ins.size());
  if (!plan.parallel) return;
  FormTasks(ins, g, remaining, &plan.tasks);
  plan.stats.tasks = plan.tasks.size();
}

}  // namespace heddle
