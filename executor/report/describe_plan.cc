#include "executor/report/describe_plan.h"

#include "core/error.h"
#include "executor/plan/arena_sharing.h"
#include "executor/plan/block_access.h"
#include "executor/plan/dependency_graph.h"

namespace heddle {
namespace {

int IdOf(uint32_t slot) { return slot == kNoSlot ? -1 : static_cast<int>(slot); }

PlanDescription::Slot Describe(const Plan& plan, const Slot& slot) {
  PlanDescription::Slot s;
  if (slot.var != ir::kNoVar) s.variable = plan.program->vars[slot.var].name;
  s.storage = StorageName(slot.storage);
  s.is_static = slot.is_static;
  if (slot.is_static) {
    s.dtype = slot.dtype;
    s.shape = slot.shape();
    s.bytes = slot.bytes();
  }
  s.offset = slot.storage == Storage::kView ? slot.shift : slot.offset;
  s.base = IdOf(slot.base);
  s.block = slot.home;
  return s;
}

PlanDescription::Instruction Describe(const Plan& plan, const Instruction& in) {
  PlanDescription::Instruction i;
  i.op = in.op.def->name();
  i.mode = ModeName(in.mode);
  i.implementation = ImplementationOf(in);
  i.block = in.ir_block;
  i.position = in.ir_op;
  for (uint32_t s : in.op.in) i.inputs.push_back(IdOf(s));
  for (uint32_t s : in.op.out) i.outputs.push_back(IdOf(s));
  i.cost_ns = in.cost_ns;
  i.once = in.once;
  for (const auto& pair : in.op.def->inplace())
    for (uint32_t k : ArenaSharing::TakeableInputs(in, pair))
      i.in_place.emplace_back(static_cast<int>(k), static_cast<int>(in.op.out_begin[pair.out]));
  i.blocks = BlocksOf(plan, in);
  return i;
}

// Which task or lane the instructions of block 0 belong to.
void AddUnits(const Plan& plan, PlanDescription* d) {
  const size_t count = plan.blocks[0].instructions.size();
  if (plan.dispatch == Dispatch::kQueue) {
    d->tasks = static_cast<int>(plan.tasks.size());
    for (uint32_t t = 0; t < plan.tasks.size(); ++t)
      for (uint32_t k = plan.tasks.node_begin[t]; k < plan.tasks.node_begin[t + 1]; ++k)
        if (plan.tasks.nodes[k] < count)
          d->instructions[plan.tasks.nodes[k]].task = static_cast<int>(t);
  }
  if (plan.dispatch != Dispatch::kLanes) return;
  d->lanes = plan.lanes->lanes;
  // The block's instructions stand in the order of the lanes.
  for (int lane = 0; lane < plan.lanes->lanes; ++lane)
    for (uint32_t k = plan.lanes->lane_begin[static_cast<size_t>(lane)];
         k < plan.lanes->lane_begin[static_cast<size_t>(lane) + 1] && k < count; ++k)
      d->instructions[k].lane = lane;
}

// A lane's instructions one after another, and what its segments wait for in other lanes.
void AddWaits(const LaneSchedule& lanes, PlanDescription* d) {
  std::vector<std::vector<int>> last(static_cast<size_t>(lanes.lanes));  // by signal
  for (size_t lane = 0; lane < last.size(); ++lane) {
    for (uint32_t i = lanes.lane_begin[lane] + 1; i < lanes.lane_begin[lane + 1]; ++i)
      d->dependencies.emplace_back(static_cast<int>(i) - 1, static_cast<int>(i));
    for (uint32_t k = lanes.segment_begin[lane]; k < lanes.segment_begin[lane + 1]; ++k) {
      const LaneSegment& segment = lanes.segments[k];
      if (segment.signal >= last[lane].size()) last[lane].resize(segment.signal + 1, -1);
      if (segment.end > segment.begin)
        last[lane][segment.signal] = static_cast<int>(segment.end) - 1;
    }
  }
  for (const LaneSegment& segment : lanes.segments) {
    for (uint32_t w = segment.wait_begin; w < segment.wait_end; ++w) {
      const LaneWait& wait = lanes.waits[w];
      if (segment.end > segment.begin && wait.signal < last[wait.lane].size() &&
          last[wait.lane][wait.signal] >= 0)
        d->dependencies.emplace_back(last[wait.lane][wait.signal], static_cast<int>(segment.begin));
    }
  }
}

void AddDependencies(const Plan& plan, PlanDescription* d) {
  if (plan.dispatch == Dispatch::kLanes) return AddWaits(*plan.lanes, d);
  const DependencyGraph found = BuildDependencies(plan, plan.blocks[0].instructions);
  for (uint32_t v = 0; v < found.graph.size; ++v)
    for (uint32_t k = found.graph.pred_begin[v]; k < found.graph.pred_begin[v + 1]; ++k)
      d->dependencies.emplace_back(static_cast<int>(found.graph.pred[k]), static_cast<int>(v));
}

std::string Escaped(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}
std::string Quoted(const std::string& text) { return '"' + Escaped(text) + '"'; }

}  // namespace

const char* StorageName(Storage s) {
  constexpr const char* kNames[] = {"none",   "feed", "scope", "const", "arena",
                                    "output", "view", "pool",  "shape"};
  return kNames[static_cast<int>(s)];
}

const char* ModeName(Instruction::Mode m) {
  constexpr const char* kNames[] = {"static", "pooled", "dynamic", "share", "replace", "wide"};
  return kNames[static_cast<int>(m)];
}

std::string SlotName(const Plan& plan, uint32_t slot) {
  if (const ir::VarId v = plan.slots[slot].var; v != ir::kNoVar) return plan.program->vars[v].name;
  for (size_t b = 0; b < plan.blocks.size(); ++b)
    if (plan.blocks[b].workspace == slot) return StrCat("(work space of block ", b, ")");
  return "";
}

PlanDescription DescribePlan(const Plan& plan) {
  constexpr const char* kDispatches[] = {"serial", "lanes", "queue", "device"};
  PlanDescription d;
  d.program = plan.program->name;
  d.dispatch = kDispatches[static_cast<int>(plan.dispatch)];
  d.arena_bytes = plan.arena_bytes;
  d.arena_bound_bytes = plan.arena_bound;
  for (const Slot& s : plan.slots) d.slots.push_back(Describe(plan, s));
  for (const BlockPlan& block : plan.blocks)
    for (const Instruction& in : block.instructions) d.instructions.push_back(Describe(plan, in));
  for (const PlanFeed& f : plan.feeds) d.feeds.push_back({f.name, IdOf(f.slot)});
  for (const PlanFetch& f : plan.fetches) d.fetches.push_back({f.name, IdOf(f.slot)});
  AddUnits(plan, &d);
  AddDependencies(plan, &d);
  return d;
}

std::string PlanDescription::ToDot() const {
  std::string text = "digraph plan {\n  node [shape=box];\n";
  for (size_t i = 0; i < instructions.size(); ++i) {
    const Instruction& in = instructions[i];
    std::string label = StrCat(i, " ", in.op);
    if (!in.implementation.empty()) label += StrCat("\\n", Escaped(in.implementation));
    for (int s : in.outputs) {
      if (s < 0) continue;
      const Slot& slot = slots[static_cast<size_t>(s)];
      label += StrCat("\\n", Escaped(slot.variable), " ", slot.storage);
      if (slot.storage == "arena") label += StrCat("+", slot.offset);
    }
    std::string node = StrCat("  i", i, " [label=\"", label, "\"");
    const int unit = in.lane >= 0 ? in.lane : in.task;
    if (unit >= 0)
      node +=
          StrCat(", group=", unit, ", colorscheme=set312, style=filled, fillcolor=", unit % 12 + 1);
    text += node + "];\n";
  }
  for (const auto& [u, v] : dependencies) text += StrCat("  i", u, " -> i", v, ";\n");
  for (const Port& f : feeds) text += StrCat("  ", Quoted("feed " + f.name), " [shape=ellipse];\n");
  for (size_t i = 0; i < instructions.size(); ++i) {
    for (const Port& f : feeds)
      for (int s : instructions[i].inputs)
        if (s == f.slot && s >= 0)
          text += StrCat("  ", Quoted("feed " + f.name), " -> i", i, ";\n");
    for (const Port& f : fetches)
      for (int s : instructions[i].outputs)
        if (s == f.slot && s >= 0)
          text += StrCat("  i", i, " -> ", Quoted("fetch " + f.name), ";\n");
  }
  return text + "}\n";
}

}  // namespace heddle
