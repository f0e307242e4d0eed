// heddle plan: what will be executed for inputs of given shapes, instruction by instruction.
#include <CLI/CLI.hpp>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "heddle/heddle.h"
#include "tools/commands.h"
#include "tools/options.h"
#include "tools/progress.h"

namespace heddle::tools {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  ModelOptions model;
  FeedOptions feeds;
  bool json = false, dot = false, memory = false;
};

Json SlotJson(const PlanDescription::Slot& slot, size_t id) {
  Json json;
  json["slot"] = id;
  json["variable"] = slot.variable;
  json["storage"] = slot.storage;
  if (slot.is_static) {
    json["dtype"] = std::string(Name(slot.dtype));
    json["shape"] = std::vector<int64_t>(slot.shape.begin(), slot.shape.end());
    json["bytes"] = slot.bytes;
  }
  if (slot.storage == "arena") json["offset"] = slot.offset;
  if (slot.base >= 0) json["base"] = slot.base;
  return json;
}

Json InstructionJson(const PlanDescription::Instruction& in) {
  Json json;
  json["op"] = in.op;
  json["mode"] = in.mode;
  json["block"] = in.block;
  json["position"] = in.position;
  json["inputs"] = in.inputs;
  json["outputs"] = in.outputs;
  json["cost_ns"] = in.cost_ns;
  if (in.task >= 0) json["task"] = in.task;
  if (in.lane >= 0) json["lane"] = in.lane;
  return json;
}

Json PortsJson(const std::vector<PlanDescription::Port>& ports) {
  Json json = Json::array();
  for (const auto& p : ports) json.push_back({{"name", p.name}, {"slot", p.slot}});
  return json;
}

// "instructions" is their number; they themselves are the "steps".
void AddDescription(const PlanDescription& plan, Json* json) {
  (*json)["dispatch"] = plan.dispatch;
  (*json)["lanes"] = plan.lanes;
  (*json)["feeds"] = PortsJson(plan.feeds);
  (*json)["fetches"] = PortsJson(plan.fetches);
  auto& slots = (*json)["slots"] = Json::array();
  for (size_t s = 0; s < plan.slots.size(); ++s) slots.push_back(SlotJson(plan.slots[s], s));
  auto& steps = (*json)["steps"] = Json::array();
  for (const auto& in : plan.instructions) steps.push_back(InstructionJson(in));
  (*json)["edges"] = plan.dependencies;
}

void PrintMemoryJson(const Options& options, int threads, const MemoryReport& report) {
  Json json;
  json["program"] = options.model.model;
  json["threads"] = threads;
  json["schedule"] = report.schedule;
  json["decided"] = report.decided;
  json["buffers"] = report.buffers;
  json["naive_bytes"] = report.naive_bytes;
  json["bound_bytes"] = report.bound_bytes;
  json["planned_bytes"] = report.planned_bytes;
  json["ratio"] = report.ratio();
  json["values"] = Json::array();
  for (const MemoryReport::Value& v : report.values)
    json["values"].push_back({{"name", v.name},
                              {"slot", v.slot},
                              {"buffer", v.buffer},
                              {"offset", v.offset},
                              {"bytes", v.bytes},
                              {"first", v.first},
                              {"last", v.last}});
  std::cout << json.dump(1, ' ', false, Json::error_handler_t::replace) << "\n";
}

void PrintJson(const Options& options, int threads, const PlanStats& stats,
               const PlanDescription& plan, const std::string& text) {
  Json json;
  json["program"] = options.model.model;
  json["threads"] = threads;
  json["instructions"] = stats.instructions;
  json["tasks"] = stats.tasks;
  json["parallel"] = stats.parallel;
  json["static_shapes"] = stats.static_shapes;
  json["arena_bytes"] = stats.arena_bytes;
  json["arena_bound_bytes"] = stats.arena_bound_bytes;
  json["dependencies_found"] = stats.dependencies_found;
  json["dependencies"] = stats.dependencies;
  json["build_ms"] = stats.build_ms;
  for (const auto& stage : stats.stages) json["stages"][stage.name] = stage.ms;
  AddDescription(plan, &json);
  json["lines"] = Json::array();
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) json["lines"].push_back(line);
  std::cout << json.dump(1, ' ', false, Json::error_handler_t::replace) << "\n";
}

Status Show(const Options& options) {
  PlanStats stats;
  PlanDescription plan;
  std::string text;
  MemoryReport memory;
  int threads = 0;
  {
    Progress progress("planning " + options.model.model);
    HEDDLE_ASSIGN_OR_RETURN(const Model model,
                            LoadModel(options.model.model, options.model.params));
    Executor executor(options.model.executor());
    HEDDLE_ASSIGN_OR_RETURN(const CompiledProgram compiled,
                            executor.Compile(model, options.model.compile()));
    FeedOptions feed_options = options.feeds;
    feed_options.random = true;  // a plan depends on shapes, hardly ever on values
    HEDDLE_ASSIGN_OR_RETURN(const auto feeds, MakeFeeds(compiled.inputs(), feed_options));
    HEDDLE_ASSIGN_OR_RETURN(stats, executor.Prepare(compiled, feeds));
    if (options.memory) {
      HEDDLE_ASSIGN_OR_RETURN(memory, executor.PlanMemory(compiled, feeds));
    } else if (options.json || options.dot) {
      HEDDLE_ASSIGN_OR_RETURN(plan, executor.DescribePlan(compiled, feeds));
    }
    HEDDLE_ASSIGN_OR_RETURN(text, executor.PlanText(compiled, feeds));
    threads = executor.threads();
  }
  if (options.memory) {
    options.json ? PrintMemoryJson(options, threads, memory) : void(std::cout << memory.ToString());
  } else if (options.json) {
    PrintJson(options, threads, stats, plan, text);
  } else if (options.dot) {
    std::cout << plan.ToDot();
  } else {
    std::cout << text << (text.ends_with('\n') ? "" : "\n");
  }
  return Status::Ok();
}

}  // namespace

void AddPlan(CLI::App& root, Action& chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* app = root.add_subcommand("plan", "print the plan that a run follows");
  AddModelOptions(*app, &options->model);
  AddFeedOptions(*app, &options->feeds);
  AddExecutionOptions(*app, &options->model);
  auto* json = app->add_flag("--json", options->json, "one JSON object instead of text");
  auto* dot = app->add_flag("--dot", options->dot, "a graph for Graphviz instead of text");
  dot->excludes(json);
  app->add_flag("--memory", options->memory,
                "where temporaries lie and for how long, what that takes and what it would at least")
      ->excludes(dot);
  app->footer(
      "Inputs without a value are given random ones, open dimensions count as 1.\n"
      "Example:\n  heddle plan resnet50/ --shape x=1,3,224,224 --threads 2");
  app->callback([options, &chosen] { chosen = [options] { return Show(*options); }; });
}

}  // namespace heddle::tools
