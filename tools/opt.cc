// heddle opt: the optimised program as a file. heddle passes: what the optimiser consists of.
#include <filesystem>
#include <iostream>

#include "heddle/heddle.h"
#include "tools/commands.h"
#include "tools/json_output.h"
#include "tools/options.h"
#include "tools/progress.h"
#include "tools/values/durable.h"

namespace heddle::tools {
namespace {

namespace fs = std::filesystem;

struct OptOptions {
  ModelOptions model;
  std::string output;
  OptimizeOptions optimize;
  bool stats = false, json = false;
};

// The two files that OUT stands for: OUT.pdmodel and OUT.pdiparams, or model.* in a directory.
std::pair<std::string, std::string> FilesOf(const std::string& out) {
  fs::path stem = out;
  std::error_code ec;
  if (fs::is_directory(stem, ec)) stem /= "model";
  if (stem.extension() == ".pdmodel") stem.replace_extension();
  return {stem.string() + ".pdmodel", stem.string() + ".pdiparams"};
}

// A file is there whole or not at all.
Status WriteWhole(const std::string& path, const std::string& bytes) {
  const std::string part = path + ".part";
  HEDDLE_RETURN_IF_ERROR(WriteDurable(part, bytes));
  std::error_code ec;
  fs::rename(part, path, ec);
  if (ec) return Status(StatusCode::kNotFound, "cannot write " + path + ": " + ec.message());
  return Status::Ok();
}

int CountOps(const Program& program) { return program.num_ops(); }

void PrintOptimizedText(const OptOptions& options, const OptimizedModel& optimized, int before) {
  std::cout << FilesOf(options.output).first << ": " << CountOps(optimized.model.program)
            << " operators (were " << before << "), "
            << optimized.model.program.persistables().size() << " parameters\n";
  if (!optimized.heddle_only.empty()) {
    std::cout << "for heddle only; Paddle does not have";
    for (const std::string& op : optimized.heddle_only)
      std::cout << (op == optimized.heddle_only[0] ? " " : ", ") << op;
    std::cout << " (--opt 1 makes a program for both)\n";
  }
  if (options.stats) std::cout << optimized.report.ToString();
}

void PrintOptimizedJson(const OptOptions& options, const OptimizedModel& optimized, int before) {
  const auto [program_file, parameter_file] = FilesOf(options.output);
  const bool parameters = !optimized.model.program.persistables().empty();
  Json json = NewJson("opt", 2);
  json["program"] = options.model.model;
  json["level"] = options.optimize.level;
  json["output"] = program_file;
  json["parameter_file"] = parameters ? Json(parameter_file) : Json();
  json["operators_before"] = before;
  json["operators"] = CountOps(optimized.model.program);
  json["parameters"] = optimized.model.program.persistables().size();
  json["heddle_only"] = optimized.heddle_only;
  json["warnings"] = optimized.report.warnings;
  json["passes"] = Json::array();
  for (const PassReport::Run& run : optimized.report.runs)
    json["passes"].push_back({{"pass", run.name},
                              {"grouping", std::string(Name(run.grouping))},
                              {"round", run.round},
                              {"changed", run.changed},
                              {"ms", run.ms},
                              {"operators_before", run.ops_before},
                              {"operators_after", run.ops_after}});
  WriteJson(json);
}

Status Optimise(const OptOptions& options) {
  OptimizedModel optimized;
  int before = 0;
  {
    Progress progress("optimising " + options.model.model);
    HEDDLE_ASSIGN_OR_RETURN(const Model model, options.model.Load());
    before = CountOps(model.program);
    OptimizeOptions optimize = options.optimize;
    optimize.fetches = options.model.fetches;
    HEDDLE_ASSIGN_OR_RETURN(optimized, OptimizeModel(model, optimize));
    HEDDLE_ASSIGN_OR_RETURN(const std::string bytes, optimized.model.program.Serialize("paddle"));
    const auto [program_file, parameter_file] = FilesOf(options.output);
    if (!optimized.model.program.persistables().empty())
      HEDDLE_RETURN_IF_ERROR(
          SaveParameters(optimized.model.program, *optimized.model.scope, parameter_file));
    HEDDLE_RETURN_IF_ERROR(WriteWhole(program_file, bytes));
  }
  if (options.json)
    PrintOptimizedJson(options, optimized, before);
  else
    PrintOptimizedText(options, optimized, before);
  for (const std::string& w : optimized.report.warnings) std::cerr << "heddle: " << w << "\n";
  return Status::Ok();
}

Status ListPasses(bool json) {
  Json all = Json::array();
  if (!json) {
    for (const PassStage& stage : PassOrder()) {
      std::cout << Name(stage.grouping) << ":";
      for (const std::string& name : stage.passes) std::cout << " " << name;
      std::cout << "\n";
    }
    std::cout << "\n";
  }
  for (const PassInfo& p : Passes()) {
    std::string groupings;
    for (PassGrouping g : p.groupings)
      groupings += (groupings.empty() ? "" : " ") + std::string(Name(g));
    if (!json) {
      std::cout << p.name << ": " << p.doc << "\n  level " << p.level << ", " << groupings
                << (p.repeat ? ", in rounds" : ", once") << "\n";
      continue;
    }
    Json j;
    j["name"] = p.name;
    j["doc"] = p.doc;
    j["level"] = p.level;
    j["groupings"] = groupings;
    j["repeat"] = p.repeat;
    j["tolerance"] = p.tolerance;
    j["before"] = p.before;
    j["after"] = p.after;
    j["refuses"] = p.refuses;
    j["own_ops"] = p.own_ops;
    all.push_back(std::move(j));
  }
  if (json) {
    Json object = NewJson("passes", 2);
    object["order"] = Json::array();
    for (const PassStage& stage : PassOrder())
      object["order"].push_back(
          {{"grouping", std::string(Name(stage.grouping))}, {"passes", stage.passes}});
    object["passes"] = std::move(all);
    WriteJson(object);
  }
  return Status::Ok();
}

}  // namespace

void AddOpt(Command root, Action& chosen) {
  auto options = std::make_shared<OptOptions>();
  Command app = root.add_command("opt", "optimise a model and write it as a file");
  AddModelOptions(app, &options->model);
  app.add_option("-o,--out,--output", options->output,
                 "what to write: OUT.pdmodel and OUT.pdiparams, or model.* in a directory")
      .required()
      .type_name("OUT");
  app.add_option("--opt", options->optimize.level,
                 "1 = clean-ups, for heddle and Paddle; 2 = also fusion and layouts, for heddle")
      .type_name("LEVEL")
      .in_range(0, 2)
      .show_default();
  AddPassOptions(app, &options->optimize.passes);
  app.add_flag("--pass-stats", options->stats, "say what each pass did, and how long it took");
  app.add_flag("--json", options->json, "one JSON object instead of text");
  app.footer(
      "Examples:\n"
      "  heddle opt resnet50/ -o resnet50.opt --pass-stats\n"
      "  heddle opt resnet50/ -o fused --opt 2 --disable-pass channels_last --dump-passes dumps");
  app.on_chosen([options, &chosen] { chosen = [options] { return Optimise(*options); }; });
}

void AddPasses(Command root, Action& chosen) {
  auto json = std::make_shared<bool>(false);
  Command app = root.add_command("passes", "list the passes of the optimiser");
  app.add_flag("--json", *json, "one JSON object with everything about them");
  app.on_chosen([=, &chosen] { chosen = [=] { return ListPasses(*json); }; });
}

}  // namespace heddle::tools
