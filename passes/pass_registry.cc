// Every pass of the project, found by the build.
#include <algorithm>

#include "passes/pass.h"
#include "passes/pipeline.h"

namespace heddle {
namespace passes {

#define HEDDLE_DECLARE_PASS(name, file) void DefinePass_##name(PassDef& pass);
#include "passes/all_passes.inc"
#undef HEDDLE_DECLARE_PASS

std::vector<PassDef> AllPasses() {
  std::vector<PassDef> passes;
  [[maybe_unused]] auto add = [&](const char* name, void (*define)(PassDef&)) {
    passes.emplace_back();
    passes.back().name = name;
    define(passes.back());
  };
#define HEDDLE_DECLARE_PASS(name, file) add(#name, &DefinePass_##name);
#include "passes/all_passes.inc"
#undef HEDDLE_DECLARE_PASS
  return passes;
}

std::function<bool(const OpDef&)> OfTypes(std::vector<std::string> types) {
  return [types = std::move(types)](const OpDef& def) {
    return std::find(types.begin(), types.end(), def.name()) != types.end();
  };
}

}  // namespace passes

const char* Name(PassGrouping grouping) {
  constexpr const char* kNames[] = {"PRE_PLACEMENT", "POST_PLACEMENT", "POST_REWRITE_FOR_EXEC",
                                    "POST_PARTITIONING"};
  return kNames[static_cast<int>(grouping)];
}

std::vector<PassStage> PassOrder() {
  passes::Pipeline pipeline = passes::HeddlePipeline();
  std::vector<PassStage> order;
  for (int g = 0; g < passes::kGroupings; ++g)
    order.push_back({static_cast<PassGrouping>(g), std::move(pipeline[g])});
  return order;
}

std::vector<PassInfo> Passes() {
  std::vector<PassInfo> all;
  for (passes::PassDef& p : passes::AllPasses()) {
    PassInfo info;
    info.name = std::move(p.name);
    info.doc = std::move(p.doc);
    info.before = std::move(p.before);
    info.after = std::move(p.after);
    info.refuses = std::move(p.refuses);
    info.level = p.level;
    info.repeat = p.repeat;
    info.tolerance = p.tolerance;
    info.own_ops = std::move(p.own_ops);
    info.own_ops.insert(info.own_ops.end(), p.own_forms.begin(), p.own_forms.end());
    all.push_back(std::move(info));
  }
  // Each pass is listed at its first run.
  std::vector<PassInfo> ordered;
  for (const PassStage& stage : PassOrder())
    for (const std::string& name : stage.passes) {
      const auto called = [&](const PassInfo& p) { return p.name == name; };
      auto at = std::find_if(ordered.begin(), ordered.end(), called);
      if (at == ordered.end())
        at = ordered.insert(at, std::move(*std::find_if(all.begin(), all.end(), called)));
      at->groupings.push_back(stage.grouping);
    }
  return ordered;
}

}  // namespace heddle
