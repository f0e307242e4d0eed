// heddle plan: what will be executed for inputs of given shapes, instruction by instruction.
#include <fstream>
#include <iostream>
#include <sstream>

#include "heddle/heddle.h"
#include "tools/commands.h"
#include "tools/engines/engine_choice.h"
#include "tools/json_output.h"
#include "tools/options.h"
#include "tools/plans/plan_json.h"
#include "tools/plans/tvm_graph.h"
#include "tools/progress.h"

namespace heddle::tools {
namespace {

struct PlanOptions {
  ModelOptions model;
  FeedOptions feeds;
  EngineChoice engines;
  bool json = false, dot = false, memory = false, why = false, tvm = false;
  std::string machine;  // file
};

void PrintMemoryJson(const PlanOptions& options, int threads, const MemoryReport& report) {
  Json json = NewJson("plan-memory");
  json["program"] = options.model.model;
  json["threads"] = threads;
  AddMemory(report, &json);
  WriteJson(json);
}

void PrintPlanJson(const PlanOptions& options, int threads, const PlanStats& stats,
                   const PlanDescription& plan, const std::string& text,
                   const OffloadReport& engines) {
  Json json = NewJson("plan", kPlanSchema);
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
  json["options"] = PlanOptionsJson(options.model);
  AddDescription(plan, &json);
  json["lines"] = Json::array();
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) json["lines"].push_back(line);
  if (options.engines.any()) json["engines"] = EnginesJson(engines);
  WriteJson(json);
}

// Each instruction whose kernel had something to choose from, with what there was.
void PrintWhy(const PlanDescription& plan) {
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    const auto& in = plan.instructions[i];
    std::string output;
    for (int s : in.outputs)
      if (output.empty() && s >= 0) output = plan.slots[static_cast<size_t>(s)].variable;
    std::cout << i << "  " << in.op << (output.empty() ? "" : " -> ") << output << ": " << in.why
              << "\n";
  }
}

// Leaves `text` empty where no file is named.
Status ReadMachine(const std::string& path, std::string* text) {
  if (path.empty()) return Status::Ok();
  std::ifstream file(path);
  std::ostringstream content;
  content << file.rdbuf();
  if (!file) return Status(StatusCode::kNotFound, path + ": no such file, or not readable");
  *text = std::move(content).str();
  if (text->empty()) return Status(StatusCode::kInvalidArgument, path + ": the file is empty");
  return Status::Ok();
}

Status Show(const PlanOptions& given) {
  PlanOptions options = given;
  HEDDLE_RETURN_IF_ERROR(FollowPlan(&options.model));
  options.engines.OpenCache();
  HEDDLE_RETURN_IF_ERROR(ReadMachine(options.machine, &options.model.machine));
  PlanStats stats;
  PlanDescription plan;
  std::string text;
  MemoryReport memory;
  OffloadReport engines;
  int threads = 0;
  {
    Progress progress("planning " + options.model.model);
    HEDDLE_ASSIGN_OR_RETURN(const Model model, options.model.Load(options.feeds));
    Executor executor(options.model.executor());
    FeedOptions feed_options = options.feeds;
    feed_options.random = true;  // a plan depends on shapes, hardly ever on values
    const CompileOptions compile = options.model.compile(model.program);
    HEDDLE_ASSIGN_OR_RETURN(const auto feeds,
                            MakeFeeds(TypedInputsOf(model.program), feed_options));
    HEDDLE_ASSIGN_OR_RETURN(const OffloadedModel offloaded,
                            ApplyEngines(options.engines, options.model, compile, model, feeds));
    engines = offloaded.report;
    HEDDLE_ASSIGN_OR_RETURN(const CompiledProgram compiled,
                            executor.Compile(offloaded.model, compile));
    HEDDLE_ASSIGN_OR_RETURN(stats, executor.Prepare(compiled, feeds));
    if (options.memory) {
      HEDDLE_ASSIGN_OR_RETURN(memory, executor.PlanMemory(compiled, feeds));
    } else if (options.json || options.dot || options.why || options.tvm) {
      HEDDLE_ASSIGN_OR_RETURN(plan, executor.DescribePlan(compiled, feeds));
    }
    HEDDLE_ASSIGN_OR_RETURN(text, executor.PlanText(compiled, feeds));
    threads = executor.threads();
  }
  if (options.memory) {
    options.json ? PrintMemoryJson(options, threads, memory) : void(std::cout << memory.ToString());
  } else if (options.json) {
    PrintPlanJson(options, threads, stats, plan, text, engines);
  } else if (options.tvm) {
    HEDDLE_ASSIGN_OR_RETURN(const Json graph, TvmGraph(plan));
    WriteJson(graph);
  } else if (options.why) {
    PrintWhy(plan);
  } else if (options.dot) {
    std::cout << plan.ToDot();
  } else {
    std::cout << text << (text.ends_with('\n') ? "" : "\n");
    if (options.engines.any()) std::cout << engines.ToString();
  }
  return Status::Ok();
}

}  // namespace

void AddPlan(Command root, Action& chosen) {
  auto options = std::make_shared<PlanOptions>();
  Command app = root.add_command("plan", "print the plan that a run follows");
  AddModelOptions(app, &options->model);
  AddFeedOptions(app, &options->feeds);
  AddExecutionOptions(app, &options->model);
  AddFollowOption(app, &options->model);
  AddEngineOptions(app, &options->engines);
  const Option json = app.add_flag("--json", options->json, "one JSON object instead of text");
  Option dot = app.add_flag("--dot", options->dot, "a graph for Graphviz instead of text");
  dot.excludes(json);
  app.add_choice(
         "--format", {{"heddle", false}, {"tvm", true}},
         [options](int tvm) { options->tvm = tvm != 0; },
         "tvm: the graph JSON of TVM's graph executor instead of text")
      .type_name("heddle|tvm")
      .show_default("heddle");
  app.add_flag("--why", options->why,
               "for each instruction, which implementations there were to choose from, with the "
               "costs or times that decided")
      .excludes(dot);
  app.add_flag("--memory", options->memory,
               "where temporaries lie and for how long, what that takes and what it would at least")
      .excludes(dot);
  app.add_option("--machine", options->machine,
                 "plan as if for the machine that this file describes, which need not be this one")
      .type_name("FILE.json");
  app.footer(
      "Inputs without a value are given random ones, open dimensions count as 1.\n"
      "Example:\n  heddle plan resnet50/ --shape x=1,3,224,224 --threads 2");
  app.on_chosen([options, &chosen] { chosen = [options] { return Show(*options); }; });
}

}  // namespace heddle::tools
