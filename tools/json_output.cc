#include "tools/json_output.h"

#include <iostream>
#include <map>
#include <tuple>
#include <type_traits>
#include <variant>

namespace heddle::tools {

Json NewJson(const std::string& command, int version) {
  Json json;
  json["schema"] = "heddle." + command + "/" + std::to_string(version);
  return json;
}

std::string JsonText(const Json& json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace);
}

void WriteJson(const Json& json) { std::cout << JsonText(json) << "\n"; }

Json ErrorJson(const Status& status) {
  Json json = NewJson("error");
  json["code"] = std::string(StatusCodeName(status.code()));
  json["message"] = status.message();
  if (const auto& at = status.location()) {
    json["block"] = at->block;
    json["index"] = at->op;
    json["op"] = at->op_type;
    json["output"] = at->output;
  }
  return json;
}

namespace {

Json SlotJson(const PlanDescription::Slot& slot, size_t id) {
  Json json;
  json["slot"] = id;
  json["variable"] = slot.variable;
  json["storage"] = slot.storage;
  json["block"] = slot.block;
  if (slot.is_static) {
    json["dtype"] = std::string(Name(slot.dtype));
    json["shape"] = std::vector<int64_t>(slot.shape.begin(), slot.shape.end());
    json["bytes"] = slot.bytes;
  }
  if (slot.storage == "arena" || slot.offset != 0) json["offset"] = slot.offset;
  if (slot.base >= 0) json["base"] = slot.base;
  json["place"] = slot.place;
  json["storage_id"] = slot.storage_id;
  return json;
}

Json AttributeJson(const AttributeValue& value) {
  return std::visit(
      [](const auto& v) -> Json {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, BlockId>) {
          return {{"block", v.id}};
        } else if constexpr (std::is_same_v<T, std::vector<BlockId>>) {
          Json list = Json::array();
          for (BlockId b : v) list.push_back({{"block", b.id}});
          return list;
        } else {
          return v;
        }
      },
      value);
}

Json ChoicesJson(const std::vector<ImplementationChoice>& choices) {
  Json list = Json::array();
  for (const ImplementationChoice& c : choices) {
    Json json = {{"family", c.family}, {"chosen", c.chosen}, {"reason", c.reason}};
    json["candidates"] = Json::array();
    for (const auto& candidate : c.candidates) {
      Json& one = json["candidates"].emplace_back();
      one["name"] = candidate.name;
      one["cost_ns"] = candidate.cost_ns;
      if (candidate.measured_ns > 0) one["measured_ns"] = candidate.measured_ns;
    }
    list.push_back(std::move(json));
  }
  return list;
}

Json InstructionJson(const PlanDescription::Instruction& in) {
  Json json;
  json["op"] = in.op;
  json["mode"] = in.mode;
  json["implementation"] = in.implementation;
  json["why"] = in.why;
  if (!in.choices.empty()) json["choices"] = ChoicesJson(in.choices);
  json["place"] = in.place;
  json["stream"] = in.stream;
  if (!in.waits.empty()) json["waits"] = in.waits;
  if (in.event >= 0) json["event"] = in.event;
  json["attributes"] = Json::object();
  for (const auto& [name, value] : in.attributes) json["attributes"][name] = AttributeJson(value);
  json["block"] = in.block;
  json["position"] = in.position;
  json["inputs"] = in.inputs;
  json["outputs"] = in.outputs;
  if (!in.in_place.empty()) json["in_place"] = in.in_place;
  if (!in.blocks.empty()) json["blocks"] = in.blocks;
  json["cost_ns"] = in.cost_ns;
  if (in.measured) json["measured"] = true;
  if (in.once) json["once"] = true;
  if (in.task >= 0) json["task"] = in.task;
  if (in.lane >= 0) json["lane"] = in.lane;
  return json;
}

Json PortsJson(const std::vector<PlanDescription::Port>& ports) {
  Json json = Json::array();
  for (const auto& p : ports) json.push_back({{"name", p.name}, {"slot", p.slot}});
  return json;
}

}  // namespace

void AddDescription(const PlanDescription& plan, Json* json) {
  (*json)["dispatch"] = plan.dispatch;
  (*json)["lanes"] = plan.lanes;
  (*json)["version"] = plan.version;
  (*json)["program_hash"] = plan.program_hash;
  (*json)["machine"] = plan.machine;
  (*json)["places"] = plan.places;
  (*json)["streams"] = plan.streams;
  (*json)["events"] = plan.events;
  (*json)["copies"] = plan.copies;
  (*json)["peer_copies"] = plan.peer_copies;
  (*json)["order"] = plan.order;
  (*json)["feeds"] = PortsJson(plan.feeds);
  (*json)["fetches"] = PortsJson(plan.fetches);
  auto& slots = (*json)["slots"] = Json::array();
  for (size_t s = 0; s < plan.slots.size(); ++s) slots.push_back(SlotJson(plan.slots[s], s));
  auto& steps = (*json)["steps"] = Json::array();
  for (const auto& in : plan.instructions) steps.push_back(InstructionJson(in));
  (*json)["edges"] = plan.dependencies;
}

void AddMemory(const MemoryReport& report, Json* json) {
  (*json)["schedule"] = report.schedule;
  (*json)["decided"] = report.decided;
  (*json)["buffers"] = report.buffers;
  (*json)["naive_bytes"] = report.naive_bytes;
  (*json)["bound_bytes"] = report.bound_bytes;
  (*json)["planned_bytes"] = report.planned_bytes;
  (*json)["ratio"] = report.ratio();
  (*json)["block_bytes"] = report.block_bytes;
  (*json)["ways"] = Json::array();
  for (const MemoryReport::Way& w : report.ways)
    (*json)["ways"].push_back({{"name", w.name},
                               {"planned_bytes", w.planned_bytes},
                               {"ratio", w.ratio},
                               {"edges", w.edges},
                               {"makespan_us", w.makespan_us}});
  (*json)["tokens"] = Json::array();
  for (const MemoryReport::Tokens& t : report.tokens)
    (*json)["tokens"].push_back({{"place", t.place}, {"dtype", t.dtype}, {"values", t.values}});
  (*json)["values"] = Json::array();
  for (const MemoryReport::Value& v : report.values)
    (*json)["values"].push_back({{"name", v.name},
                                 {"slot", v.slot},
                                 {"buffer", v.buffer},
                                 {"offset", v.offset},
                                 {"bytes", v.bytes},
                                 {"first", v.first},
                                 {"last", v.last}});
}

Json PlacesJson(const std::vector<PlaceMemory>& places) {
  Json list = Json::array();
  for (const PlaceMemory& p : places)
    list.push_back({{"place", p.place},
                    {"allocated_bytes", p.allocated_bytes},
                    {"reserved_bytes", p.reserved_bytes},
                    {"peak_bytes", p.peak_bytes}});
  return list;
}

namespace {

double PerNanosecond(double amount, double us) { return us > 0 ? amount / us * 1e-3 : 0; }

Json OperatorsJson(const Profile& p) {
  Json list = Json::array();
  for (const OperatorSum& s : ByOperator(p))
    list.push_back({{"op", s.op},
                    {"count", s.count},
                    {"times", s.times},
                    {"us", s.us},
                    {"share", p.Share(s.us)},
                    {"flops", s.flops},
                    {"bytes", s.bytes},
                    {"gflops", PerNanosecond(s.flops, s.us)},
                    {"gbs", PerNanosecond(s.bytes, s.us)},
                    {"peak_share", p.PeakShare(s.us, s.flops, s.bytes)}});
  return list;
}

Json InstructionsJson(const Profile& p) {
  Json list = Json::array();
  for (const ProfileLine& line : p.lines)
    list.push_back({{"op", line.event.op},
                    {"output", line.event.output},
                    {"block", line.event.block},
                    {"index", line.event.index},
                    {"stream", line.event.stream},
                    {"step", line.step},
                    {"times", line.times},
                    {"us", line.us},
                    {"share", p.Share(line.us)},
                    {"flops", line.flops},
                    {"bytes", line.bytes},
                    {"gflops", line.gflops()},
                    {"gbs", line.gbs()},
                    {"peak_share", p.PeakShare(line.us, line.flops, line.bytes)},
                    {"inputs", ShapesText(line.event.inputs)},
                    {"outputs", ShapesText(line.event.outputs)},
                    {"implementation", line.event.implementation}});
  return list;
}

Json SpansJson(const RunReport& run) {
  Json list = Json::array();
  for (const TraceSpan& s : run.spans)
    list.push_back({{"kind", s.kind},
                    {"of", s.of},
                    {"thread", s.thread},
                    {"stream", s.stream},
                    {"begin_us", s.begin_us},
                    {"end_us", s.end_us}});
  return list;
}

// By place, rows [us, bytes].
Json MemoryLineJson(const RunReport& run) {
  Json json = Json::object();
  for (const MemorySample& m : run.memory) json[m.place].push_back({m.us, m.bytes});
  return json;
}

// The events of one run, as rows [instruction, lane, begin_us, end_us, thread]; an event that no
// line of the profile is about has -1 for its instruction.
Json TimelineJson(const Profile& p) {
  std::map<std::tuple<int, int, std::string>, int> lines;
  for (size_t k = 0; k < p.lines.size(); ++k) {
    const TraceEvent& e = p.lines[k].event;
    lines.try_emplace({e.block, e.index, e.output}, static_cast<int>(k));
  }
  Json events = Json::array();
  for (const TraceEvent& e : p.sample.events) {
    const auto line = lines.find({e.block, e.index, e.output});
    events.push_back(
        {line == lines.end() ? -1 : line->second, e.lane, e.begin_us, e.end_us, e.thread});
  }
  Json json;
  json["run_us"] = p.sample.run_us;
  json["threads"] = p.sample.threads;
  json["events"] = std::move(events);
  json["spans"] = SpansJson(p.sample);
  json["memory"] = MemoryLineJson(p.sample);
  return json;
}

Json SchedulerJson(const RunReport& r) {
  Json json;
  json["waits"] = r.waits;
  json["switches"] = r.switches;
  json["parks"] = r.parks;
  json["spun_us"] = r.spun_us;
  json["parked_us"] = r.parked_us;
  json["work_us"] = r.work_us;
  json["critical_path_us"] = r.critical_path_us;
  json["settled"] = r.settled;
  return json;
}

Json PlanJson(const Profile& p) {
  Json json;
  json["instructions"] = p.stats.instructions;
  json["tasks"] = p.stats.tasks;
  json["arena_bytes"] = p.stats.arena_bytes;
  json["arena_bound_bytes"] = p.stats.arena_bound_bytes;
  json["build_ms"] = p.stats.build_ms;
  AddDescription(p.plan, &json);
  return json;
}

}  // namespace

Json ProfileJson(const std::string& program, const Profile& p) {
  Json json = NewJson("profile", 3);
  json["program"] = program;
  json["threads"] = p.threads;
  json["dispatch"] = p.dispatch;
  json["lanes"] = p.lanes;
  json["runs"] = p.runs;
  json["run_us"] = p.run_us;
  json["kernels_us"] = p.kernels_us;
  json["outside_share"] = p.outside;
  for (const auto& [stream, us] : p.streams) json["streams_us"][stream] = us;
  json["peak_gflops"] = p.peak.gflops;
  json["peak_copy_gbs"] = p.peak.copy_gbs;
  json["operators"] = OperatorsJson(p);
  json["instructions"] = InstructionsJson(p);
  json["scheduler"] = SchedulerJson(p.sample);
  json["timeline"] = TimelineJson(p);
  AddMemory(p.memory, &json["memory"]);
  json["memory_use"] = PlacesJson(p.memory_use);
  json["plan"] = PlanJson(p);
  return json;
}

}  // namespace heddle::tools
