#include "executor/report/describe_plan.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <tuple>

#include "core/error.h"
#include "executor/plan/arena_sharing.h"
#include "executor/plan/block_access.h"
#include "executor/plan/dependency_graph.h"
#include "executor/plan/device/insert_copies.h"
#include "executor/plan/device_plan.h"
#include "passes/public_attributes.h"

namespace heddle {
namespace {

int IdOf(uint32_t slot) { return slot == kNoSlot ? -1 : static_cast<int>(slot); }

const std::string& PlaceName(const std::vector<std::string>& places, size_t place) {
  return places[std::min(place, places.size() - 1)];
}

PlanDescription::Slot Describe(const Plan& plan, const Slot& slot,
                               const std::vector<std::string>& places) {
  PlanDescription::Slot s;
  s.place = PlaceName(places, slot.place);
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

// Numbers the storages: slots in the same memory get the same number, in order of first appearance.
void NumberStorages(const Plan& plan, PlanDescription* d) {
  // The kind of memory and what identifies it: a buffer of the arena, an offset in a device's
  // arena, or the slot itself.
  std::map<std::tuple<int, int, size_t>, int> ids;
  for (uint32_t s = 0; s < plan.slots.size(); ++s) {
    const uint32_t root = plan.RootOf(s);
    const Slot& slot = plan.slots[root];
    if (slot.storage == Storage::kNone || slot.storage == Storage::kShape ||
        slot.storage == Storage::kBound)
      continue;
    std::tuple<int, int, size_t> key{0, 0, root};
    if (slot.storage == Storage::kArena) {
      // Slots at one offset of one layout share its memory one after another.
      key = {1, slot.home, slot.offset};
    } else if (slot.place != 0 && plan.device && root < plan.device->offsets.size() &&
               plan.device->offsets[root] != DevicePlan::kNoOffset) {
      key = {2, slot.place, plan.device->offsets[root]};
    }
    d->slots[s].storage_id = ids.emplace(key, static_cast<int>(ids.size())).first->second;
  }
}

std::string WhyText(const Instruction& in, const std::vector<ImplementationChoice>& choices) {
  std::string text;
  for (const ImplementationChoice& c : choices) text += (text.empty() ? "" : "; ") + c.ToString();
  if (!text.empty()) return text;
  if (in.mode == Instruction::Mode::kDynamic) return "its shapes are known only at run time";
  if (in.mode == Instruction::Mode::kShare) return "nothing is computed";
  return "there is one way only";
}

PlanDescription::Instruction Describe(const Plan& plan, const Instruction& in,
                                      const std::vector<std::string>& places) {
  PlanDescription::Instruction i;
  i.place = places[0];
  if (plan.OperatorOf(in) != nullptr) {
    const auto choices = plan.choices.find({in.ir_block, in.ir_op});
    if (choices != plan.choices.end()) i.choices = choices->second;
    const auto& defs = in.op.def->attrs();
    for (size_t a = 0; a < defs.size() && in.op.attrs != nullptr; ++a)
      i.attributes.emplace_back(defs[a].name, ToPublic(in.op.attrs[a]));
  }
  i.implementation = ImplementationOf(in);
  i.why = WhyText(in, i.choices);
  if (IsPeerCopy(plan, in)) {
    i.implementation = "peer";
    i.why = StrCat("straight from ", PlaceName(places, plan.slots[in.op.in[0]].place),
                   ", whose memory the device reads");
  }
  i.op = in.op.def->name();
  i.mode = ModeName(plan, in);
  i.block = in.ir_block;
  i.position = in.ir_op;
  for (uint32_t s : in.op.in) i.inputs.push_back(IdOf(s));
  for (uint32_t s : in.op.out) i.outputs.push_back(IdOf(s));
  i.cost_ns = in.cost_ns;
  i.measured = in.measured;
  if (in.measured)
    i.why += StrCat("; its stream by the ", static_cast<int64_t>(in.cost_ns), " ns that it took");
  i.once = in.once;
  for (const auto& pair : in.op.def->inplace())
    for (uint32_t k : ArenaSharing::TakeableInputs(in, pair))
      i.in_place.emplace_back(static_cast<int>(k), static_cast<int>(in.op.out_begin[pair.out]));
  i.blocks = BlocksOf(plan, in);
  return i;
}

// Adds the task or lane of each instruction of block 0.
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
  for (uint32_t position : plan.serial_order) d->order.push_back(static_cast<int>(position));
  for (uint32_t k = 0; k < plan.lanes->segments.size(); ++k)
    for (uint32_t i = plan.lanes->segments[k].begin; i < plan.lanes->segments[k].end; ++i)
      if (i < count) d->instructions[i].task = static_cast<int>(k);
  d->lanes = plan.lanes->lanes;
  // The block's instructions are stored lane after lane.
  for (int lane = 0; lane < plan.lanes->lanes; ++lane)
    for (uint32_t k = plan.lanes->lane_begin[static_cast<size_t>(lane)];
         k < plan.lanes->lane_begin[static_cast<size_t>(lane) + 1] && k < count; ++k)
      d->instructions[k].lane = lane;
}

// Describes a sub-block in its order for one thread, each instruction with its lane and segment.
void DescribeBodyInLanes(const Plan& plan, const BlockPlan& block,
                         const std::vector<std::string>& places, PlanDescription* d) {
  const LaneSchedule& lanes = *block.lanes;
  std::vector<int> lane_of(block.instructions.size()), segment_of(block.instructions.size());
  for (size_t lane = 0; lane < static_cast<size_t>(lanes.lanes); ++lane)
    for (uint32_t k = lanes.segment_begin[lane]; k < lanes.segment_begin[lane + 1]; ++k)
      for (uint32_t i = lanes.segments[k].begin; i < lanes.segments[k].end; ++i) {
        lane_of[i] = static_cast<int>(lane);
        segment_of[i] = static_cast<int>(k);
      }
  for (uint32_t i : block.serial_order) {
    d->instructions.push_back(Describe(plan, block.instructions[i], places));
    d->instructions.back().lane = lane_of[i];
    d->instructions.back().task = segment_of[i];
  }
}

// Adds, for blocks that a device executes, the places of the instructions, and which instructions
// each waits for.
void AddStreams(const Plan& plan, const std::vector<std::string>& places, PlanDescription* d) {
  if (!plan.device) return;
  const DevicePlan& device = *plan.device;
  d->events = static_cast<int>(device.events);
  d->copies = static_cast<int>(device.copies);
  d->peer_copies = static_cast<int>(device.peer_copies);
  for (uint32_t stream = 1; stream < device.streams; ++stream)
    d->streams.push_back(device.StreamName(stream));
  std::vector<size_t> first;  // per block: index of its first instruction in `d`
  for (size_t b = 0, count = 0; b < plan.blocks.size(); ++b) {
    first.push_back(count);
    count += plan.blocks[b].instructions.size();
  }
  for (const DeviceStep& step : device.steps) {
    PlanDescription::Instruction& in = d->instructions[first[step.block] + step.at];
    for (uint32_t w = step.wait_begin; w < step.wait_end; ++w)
      in.waits.push_back(static_cast<int>(device.waits[w]));
    if (step.record != DeviceStep::kNone) in.event = static_cast<int>(step.record);
    if (step.task != DeviceStep::kNone) in.task = static_cast<int>(step.task);
    if (step.stream == 0 || step.stream >= device.streams) continue;
    in.stream = device.StreamName(step.stream);
    if (step.kind != DeviceStep::Kind::kCopyOut)
      in.place = PlaceName(places, 1 + device.DeviceOf(step.stream));
  }
}

// Adds the order of each lane, and the waits of its segments for other lanes.
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
                                    "output", "view", "pool",  "shape", "bound"};
  return kNames[static_cast<int>(s)];
}

const char* ModeName(const Plan& plan, const Instruction& in) {
  constexpr const char* kNames[] = {"static",  "pooled", "dynamic", "share",
                                    "replace", "wide",   "static"};
  const BlockPlan& block = plan.blocks[static_cast<size_t>(in.ir_block)];
  const Instruction* const end = block.instructions.data() + block.instructions.size();
  const bool in_tail = &in < end && &in >= end - block.tail.size() && block.lanes == nullptr;
  return in_tail ? "scalar" : kNames[static_cast<int>(in.mode)];
}

std::string SlotName(const Plan& plan, uint32_t slot) {
  if (const ir::VarId v = plan.slots[slot].var; v != ir::kNoVar) return plan.program->vars[v].name;
  for (size_t b = 0; b < plan.blocks.size(); ++b)
    if (plan.blocks[b].workspace == slot) return StrCat("(work space of block ", b, ")");
  return "";
}

std::string ImplementationChoice::ToString() const {
  std::string text = chosen + ": ";
  if (reason == "only") return text + "no other covers the case";
  text += reason == "cost"       ? "cheapest of "
          : reason == "measured" ? "fastest of "
          : reason == "kept"     ? "fastest, as a tuning file says, of "
                                 : "insisted on; there are ";
  for (size_t k = 0; k < candidates.size(); ++k) {
    const Candidate& c = candidates[k];
    char ns[64] = "";
    if (c.measured_ns > 0)
      std::snprintf(ns, sizeof ns, " %.0f ns (expected %.0f)", c.measured_ns, c.cost_ns);
    else if (c.cost_ns > 0)
      std::snprintf(ns, sizeof ns, " %.0f ns", c.cost_ns);
    text += (k == 0 ? "" : ", ") + c.name + ns;
  }
  return text;
}

PlanDescription DescribePlan(const Plan& plan, const std::vector<std::string>& places) {
  constexpr const char* kDispatches[] = {"serial", "lanes", "queue", "device"};
  PlanDescription d;
  d.program = plan.program->name;
  d.dispatch = kDispatches[static_cast<int>(plan.dispatch)];
  d.arena_bytes = plan.arena_bytes;
  d.arena_bound_bytes = plan.arena_bound;
  for (const Slot& s : plan.slots) d.slots.push_back(Describe(plan, s, places));
  for (const BlockPlan& block : plan.blocks) {
    if (block.lanes) {
      DescribeBodyInLanes(plan, block, places, &d);
      continue;
    }
    for (const Instruction& in : block.instructions)
      d.instructions.push_back(Describe(plan, in, places));
  }
  NumberStorages(plan, &d);
  for (const PlanFeed& f : plan.feeds) d.feeds.push_back({f.name, IdOf(f.slot)});
  for (const PlanFetch& f : plan.fetches) d.fetches.push_back({f.name, IdOf(f.slot)});
  d.places = plan.dispatch == Dispatch::kDevice ? places : std::vector<std::string>{places[0]};
  AddUnits(plan, &d);
  AddStreams(plan, places, &d);
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
