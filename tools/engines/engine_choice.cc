#include "tools/engines/engine_choice.h"

#include <algorithm>
#include <iostream>
#include <thread>

#include "tools/values/names.h"

namespace heddle::tools {
namespace {

Status Wrong(const std::string& text) { return Status(StatusCode::kInvalidArgument, text); }

std::string TargetOf(const std::string& engine) { return engine.substr(0, engine.find('=')); }

// What is said of engines is said of engines that there are.
Status CheckOptions(const EngineChoice& choice) {
  for (const std::string& text : choice.options) {
    const size_t colon = text.find(':'), equals = text.find('=');
    if (colon == std::string::npos || equals == std::string::npos || equals < colon)
      return Wrong("--engine-option " + text + ": expected TARGET:KEY=VALUE");
    std::vector<std::string> known;
    for (const std::string& engine : choice.engines) known.push_back(TargetOf(engine));
    const std::string target = text.substr(0, colon);
    if (std::find(known.begin(), known.end(), target) == known.end())
      return Wrong("--engine-option " + text + ": no --engine is for '" + target + "'" +
                   DidYouMean(target, known));
  }
  if (choice.limit_ms > 0 && choice.engines.empty())
    return Wrong("--engine-limit-ms " + std::to_string(choice.limit_ms) +
                 ": no --engine is named whose calls it would end");
  return Status::Ok();
}

// The options of the engine that is named for the target.
EngineOptions OptionsFor(const EngineChoice& choice, const std::string& target, int threads) {
  EngineOptions options;
  options.threads = threads > 0 ? threads : static_cast<int>(std::thread::hardware_concurrency());
  options.limit = std::chrono::milliseconds(choice.limit_ms);
  for (const std::string& text : choice.options) {  // as CheckOptions has found them
    const size_t colon = text.find(':'), equals = text.find('=');
    if (text.substr(0, colon) == target)
      options.options.emplace_back(text.substr(colon + 1, equals - colon - 1),
                                   text.substr(equals + 1));
  }
  return options;
}

Result<std::vector<Offloader>> OffloadersOf(const EngineChoice& choice, int threads) {
  HEDDLE_RETURN_IF_ERROR(CheckOptions(choice));
  std::vector<Offloader> offloaders;
  for (const std::string& file : choice.targets) {
    HEDDLE_ASSIGN_OR_RETURN(HardwareTarget target, HardwareTarget::Load(file));
    WarnOfNames(target.impl(), file);
    offloaders.push_back({std::move(target), std::nullopt});
  }
  for (const std::string& text : choice.engines) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      return Wrong("--engine " + text + ": expected TARGET=LIBRARY");
    const std::string name = TargetOf(text);
    HEDDLE_ASSIGN_OR_RETURN(const Engine engine, Engine::Load(text.substr(equals + 1),
                                                              OptionsFor(choice, name, threads)));
    bool found = false;
    for (Offloader& offloader : offloaders) {
      if (offloader.target.name() != name) continue;
      if (offloader.engine) return Wrong("--engine " + text + ": the target has an engine already");
      offloader.engine = engine;
      found = true;
    }
    if (found) continue;
    const auto own = engine.target();
    if (own.status().code() == StatusCode::kNotFound)
      return Wrong("--engine " + text + ": no --target is called '" + name + "', and " +
                   own.status().message());
    HEDDLE_ASSIGN_OR_RETURN(HardwareTarget target, own);
    if (target.name() != name)
      return Wrong("--engine " + text + ": no --target is called '" + name +
                   "', and what the engine says it takes is called '" + target.name() + "'");
    offloaders.push_back({std::move(target), engine});
  }
  return offloaders;
}

}  // namespace

void WarnOfNames(const partition::Target& target, const std::string& file) {
  for (const partition::UnknownName& unknown : partition::UnknownNames(target))
    std::cerr << "heddle: " << file << ": " << unknown.what << " is called '" << unknown.name << "'"
              << DidYouMean(unknown.name, unknown.known) << "\n";
}

void EngineChoice::OpenCache() {
  if (!cache_directory.empty())
    cache = EngineCache::OnDisk(cache_directory, static_cast<int64_t>(cache_mb) << 20);
}

void AddEngineOptions(Command app, EngineChoice* choice) {
  app.add_option("--target", choice->targets,
                 "what a piece of hardware takes (docs/partition.md): its groups are computed one "
                 "by one; may be repeated: the first claims first")
      .type_name("FILE")
      .one_value_each();
  const Option engine =
      app.add_option(
             "--engine", choice->engines,
             "the library that computes the groups of a target (docs/engines.md), which may be "
             "one that the library brings; may be repeated")
          .type_name("TARGET=LIBRARY")
          .one_value_each();
  app.add_option("--engine-option", choice->options, "an option of that library; may be repeated")
      .type_name("TARGET:KEY=VALUE")
      .one_value_each();
  app.add_choice(
         "--engine-policy", {{"measured", 0}, {"always", 1}},
         [choice](int always) { choice->always = always != 0; },
         "measured: a group goes to an engine where that is faster; always: where the engine takes "
         "it")
      .type_name("measured|always")
      .show_default("measured");
  app.add_option(
         "--engine-limit-ms", choice->limit_ms,
         "give up a run of a group that takes longer, and with heddle_engine_process.so any "
         "call of an engine [any time]")
      .type_name("MS")
      .positive();
  const Option directory =
      app.add_option("--engine-cache", choice->cache_directory,
                     "keep what engines compile in this folder, and take from there what they have "
                     "compiled before (docs/engines.md)")
          .type_name("DIR")
          .needs(engine);
  app.add_option("--engine-cache-mb", choice->cache_mb, "what lies there takes no more than that")
      .type_name("MB")
      .positive()
      .show_default()
      .needs(directory);
}

Result<OffloadedModel> ApplyEngines(const EngineChoice& choice, const ModelOptions& options,
                                    const CompileOptions& compile, Model model,
                                    const std::vector<Feed>& feeds) {
  if (!choice.any()) return OffloadedModel{std::move(model), {}};
  HEDDLE_ASSIGN_OR_RETURN(const auto offloaders, OffloadersOf(choice, options.threads));
  OffloadOptions offload;
  offload.policy =
      choice.always ? OffloadOptions::Policy::kAlways : OffloadOptions::Policy::kMeasured;
  offload.feeds = feeds;
  offload.executor = options.executor();
  offload.compile = compile;
  offload.cache = choice.cache;
  return Offload(model, offloaders, offload);
}

Json EnginesJson(const OffloadReport& report) {
  Json json;
  json["operators"] = report.operators;
  json["decision"] = report.decision;
  json["alone_ms"] = report.alone_ms;
  json["offloaded_ms"] = report.offloaded_ms;
  if (!report.cache_warning.empty()) json["cache_warning"] = report.cache_warning;
  json["groups"] = Json::array();
  for (const OffloadedGroup& group : report.groups)
    json["groups"].push_back({{"symbol", group.symbol},
                              {"target", group.target},
                              {"engine", group.engine},
                              {"block", group.block},
                              {"operators", group.operators},
                              {"inputs", group.inputs},
                              {"outputs", group.outputs},
                              {"cache", group.cache},
                              {"taken", group.taken},
                              {"reason", group.reason},
                              {"engine_ms", group.engine_ms},
                              {"host_ms", group.host_ms},
                              {"runs", group.runs().runs},
                              {"refused_runs", group.runs().refused},
                              {"refusal", group.runs().reason}});
  json["refusals"] = Json::array();
  for (const OffloadRefusal& refusal : report.refusals)
    json["refusals"].push_back({{"target", refusal.target},
                                {"engine", refusal.engine},
                                {"reason", refusal.reason},
                                {"operators", refusal.operators}});
  return json;
}

}  // namespace heddle::tools
