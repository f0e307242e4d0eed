// The public functions: engines, targets, and programs with both.
#include <algorithm>
#include <iterator>
#include <sstream>

#include "core/error.h"
#include "core/file.h"
#include "core/interrupts.h"
#include "heddle/engine.h"
#include "offload/engine_library.h"
#include "offload/group_description.h"
#include "offload/group_passes.h"
#include "offload/measure.h"
#include "offload/module_cache.h"
#include "offload/split.h"

namespace heddle {

Result<HardwareTarget> HardwareTarget::Load(const std::string& path) {
  HEDDLE_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  return Parse(text, path);
}

Result<HardwareTarget> HardwareTarget::Parse(std::string_view json, const std::string& name) {
  HEDDLE_ASSIGN_OR_RETURN(partition::Target target, partition::ParseTarget(json, name));
  return HardwareTarget(std::make_shared<const partition::Target>(std::move(target)),
                        std::make_shared<const std::string>(json));
}

const std::string& HardwareTarget::name() const { return impl_->name; }

Result<Engine> Engine::Load(const std::string& path, const EngineOptions& options) {
  HEDDLE_ASSIGN_OR_RETURN(auto library, offload::EngineLibrary::Load(path, options));
  return Engine(std::move(library));
}

Result<Engine> Engine::FromTable(const heddle_engine_table* table, const EngineOptions& options) {
  HEDDLE_ASSIGN_OR_RETURN(auto library, offload::EngineLibrary::Open(table, "engine", options));
  return Engine(std::move(library));
}

const std::string& Engine::name() const { return impl_->name(); }

Result<HardwareTarget> Engine::target() const {
  HEDDLE_ASSIGN_OR_RETURN(const std::string text, impl_->TargetText());
  if (text.empty()) return NotFound("engine ", name(), " does not say what it takes");
  return HardwareTarget::Parse(text, "engine " + name());
}

GroupRuns OffloadedGroup::runs() const { return count == nullptr ? GroupRuns() : count->runs(); }

namespace {

void AppendRefusals(const std::vector<OffloadRefusal>& refusals, std::ostringstream* text) {
  constexpr size_t kMost = 10;
  for (size_t k = 0; k < std::min(kMost, refusals.size()); ++k) {
    const size_t n = refusals[k].operators.size();
    *text << n << (n == 1 ? " operator stays: " : " operators stay: ") << refusals[k].reason
          << "\n";
  }
  if (refusals.size() > kMost)
    *text << "operators stay for " << refusals.size() - kMost << " more reasons\n";
}

}  // namespace

std::string OffloadReport::ToString() const {
  std::ostringstream text;
  size_t taken = 0, covered = 0;
  for (const OffloadedGroup& group : groups) {
    taken += group.taken ? 1 : 0;
    covered += group.taken ? group.operators.size() : 0;
  }
  text << taken << " of " << groups.size() << " groups are taken, with " << covered << " of "
       << operators << " operators\n";
  for (const PassReport::Run& run : passes.runs)
    if (run.changed)
      text << "pass " << run.name << " made " << run.ops_after << " operators of " << run.ops_before
           << "\n";
  if (groups.empty() && refusals.empty())
    text << "no operator can be grouped; heddle partition MODEL --target FILE says why\n";
  AppendRefusals(refusals, &text);
  if (!decision.empty()) text << decision << "\n";
  if (!cache_warning.empty())
    text << "the cache is not used as it should be: " << cache_warning << "\n";
  for (const OffloadedGroup& group : groups) {
    text << group.symbol << " of target " << group.target;
    if (!group.engine.empty()) text << " for engine " << group.engine;
    text << ": " << group.operators.size()
         << (group.operators.size() == 1 ? " operator" : " operators");
    if (group.block > 0) text << " of block " << group.block;
    text << ", " << group.inputs << " in, " << group.outputs << " out";
    text.precision(3);
    if (group.host_ms > 0)
      text << "; " << group.engine_ms << " ms on the engine, " << group.host_ms << " ms on heddle";
    if (!group.cache.empty()) text << "; cache: " << group.cache;
    text << (group.taken ? "; taken" : "; stays: " + group.reason);
    if (const GroupRuns runs = group.runs(); runs.refused > 0)
      text << "; refused " << runs.refused << " of " << runs.runs << " runs: " << runs.reason;
    text << "\n";
  }
  return std::move(text).str();
}

namespace offload {
namespace {

OffloadedGroup ReportOf(const Group& group, const Offloader& offloader) {
  OffloadedGroup report;
  report.symbol = group.symbol;
  report.target = offloader.target.name();
  if (offloader.engine) report.engine = offloader.engine->name();
  report.block = group.block;
  for (const ir::Op& op : group.program->blocks[0].ops) report.operators.push_back(op.type());
  report.inputs = group.inputs.size();
  report.outputs = group.outputs.size();
  report.reason = group.refused;
  return report;
}

// Asks the engines for the operators of their groups. Notes those that are refused in `targets` and
// in the report, and returns whether there were any.
bool NoteRefused(const std::vector<Offloader>& offloaders, const Split& split, EngineCache* cache,
                 std::vector<partition::Target>* targets, OffloadReport* report) {
  bool any = false;
  const auto note = [&](const Offloader& offloader, const std::string& why,
                        const std::string& type) {
    const OffloadRefusal fresh = {offloader.target.name(), offloader.engine->name(), why, {}};
    auto at = std::find_if(report->refusals.begin(), report->refusals.end(), [&](const auto& r) {
      return r.target == fresh.target && r.reason == fresh.reason;
    });
    if (at == report->refusals.end()) at = report->refusals.insert(at, fresh);
    at->operators.push_back(type);
  };
  for (const auto& group : split.groups()) {
    const Offloader& offloader = offloaders[group->offloader];
    if (!offloader.engine || !offloader.engine->impl()->asks()) continue;
    for (auto& [i, why] : RefusedBy(offloader, *group, cache)) {
      any = true;
      LookForInterrupt();
      note(offloader, why, group->program->blocks[0].ops[i].type());
      const int index = group->program->blocks[0].ops[i].index;
      (*targets)[group->offloader].refused[{group->block, index}] = std::move(why);
    }
  }
  return any;
}

using Modules = std::vector<ModuleCache::Made>;

// Modules of all groups of one target, compiled in one call.
Modules ModulesOf(const Offloader& offloader, const std::vector<Candidate>& asked,
                  EngineCache* cache, std::string* warning) {
  EngineLibrary& library = *offloader.engine->impl();
  if (cache != nullptr) {
    std::vector<std::shared_ptr<const Group>> groups;
    for (const Candidate& c : asked) groups.push_back(c.group);
    return cache->impl().Get(library, offloader.target.name(), offloader.target.text(), groups,
                             warning);
  }
  std::vector<std::shared_ptr<const GroupDescription>> descriptions;
  for (const Candidate& c : asked) descriptions.push_back(library.Describe(*c.group));
  Modules modules;
  for (auto& module : library.Compile(descriptions)) modules.push_back({std::move(module)});
  return modules;
}

// What the engine of a target makes of its groups; without one, the groups.
std::vector<Candidate> CompileFor(const Offloader& offloader, size_t index, const Split& split,
                                  EngineCache* cache, OffloadReport* report) {
  std::vector<Candidate> asked, compiled;
  for (size_t k = 0; k < split.groups().size(); ++k) {
    const std::shared_ptr<Group>& group = split.groups()[k];
    if (group->offloader == index && group->refused.empty())
      asked.push_back({group, nullptr, &report->groups[k]});
  }
  if (!offloader.engine || asked.empty()) return asked;
  Modules modules = ModulesOf(offloader, asked, cache, &report->cache_warning);
  for (size_t k = 0; k < asked.size(); ++k) {
    if (!modules[k].module.ok()) {
      asked[k].report->reason = modules[k].module.status().message();
      continue;
    }
    asked[k].report->cache = modules[k].from;
    asked[k].module = *std::move(modules[k].module);
    compiled.push_back(std::move(asked[k]));
  }
  return compiled;
}

// What plans say of a group.
std::string Told(const OffloadedGroup& group) {
  std::ostringstream text;
  text << group.symbol << " on " << (group.engine.empty() ? group.target : group.engine) << ", "
       << group.operators.size() << (group.operators.size() == 1 ? " operator" : " operators");
  text.precision(3);
  if (group.host_ms > 0)
    text << ", " << group.engine_ms << " ms, heddle " << group.host_ms << " ms";
  return std::move(text).str();
}

}  // namespace
}  // namespace offload

namespace {

Result<OffloadedModel> OffloadNow(const Model& model, const std::vector<Offloader>& offloaders,
                                  const OffloadOptions& options) {
  OffloadedModel result{model, {}};
  OffloadReport& report = result.report;
  std::vector<partition::Target> targets;
  for (const Offloader& offloader : offloaders) targets.push_back(offloader.target.impl());
  std::unique_ptr<offload::Split> split;
  do {  // what engines refuse leaves other groups
    HEDDLE_ASSIGN_OR_RETURN(split, offload::Split::Make(model, options.compile.fetches, targets));
    LookForInterrupt();
  } while (offload::NoteRefused(offloaders, *split, options.cache.get(), &targets, &report));
  report.operators = split->operators();
  for (const auto& group : split->groups())
    report.groups.push_back(offload::ReportOf(*group, offloaders[group->offloader]));
  Model with = model;  // parameters that passes make lie in a scope of their own
  HEDDLE_ASSIGN_OR_RETURN(report.passes,
                          offload::RunPasses(model, offloaders, options, split.get(), &with.scope));
  std::vector<offload::Candidate> taken, emulated;
  for (size_t e = 0; e < offloaders.size(); ++e) {
    auto& to = offloaders[e].engine ? taken : emulated;
    for (auto& c : offload::CompileFor(offloaders[e], e, *split, options.cache.get(), &report))
      to.push_back(std::move(c));
  }
  LookForInterrupt();  // what ended calls of engines is not theirs
  if (options.policy == OffloadOptions::Policy::kMeasured && !taken.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(taken,
                            offload::TakeFaster(with, *split, options, std::move(taken), &report));
  }
  std::move(emulated.begin(), emulated.end(), std::back_inserter(taken));
  if (taken.empty()) return result;
  std::vector<std::shared_ptr<const offload::GroupOp>> ops;
  for (const offload::Candidate& c : taken) {
    c.report->taken = true;
    const auto count = std::make_shared<offload::RunCount>();
    c.report->count = count;
    ops.push_back(std::make_shared<offload::GroupOp>(
        c.group, c.module,
        offload::GroupOp::Options{.told = offload::Told(*c.report),
                                  .cost_ns = c.report->engine_ms * 1e6,
                                  .host_level = options.compile.opt_level,
                                  .count = count}));
  }
  HEDDLE_ASSIGN_OR_RETURN(result.model.program, split->Join(ops));
  result.model.scope = with.scope;
  return result;
}

}  // namespace

Result<OffloadedModel> Offload(const Model& model, const std::vector<Offloader>& offloaders,
                               const OffloadOptions& options) {
  return EndedInTime([&] { return OffloadNow(model, offloaders, options); });
}

}  // namespace heddle
