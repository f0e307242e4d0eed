// Every pass of the project, found by the build.
#include <algorithm>

#include "passes/pass.h"

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
  std::stable_sort(passes.begin(), passes.end(), [](const PassDef& a, const PassDef& b) {
    return a.phase != b.phase ? a.phase < b.phase : a.name < b.name;
  });
  return passes;
}

}  // namespace passes

const char* Name(PassGrouping grouping) {
  constexpr const char* kNames[] = {"PRE_PLACEMENT", "POST_PLACEMENT", "POST_REWRITE_FOR_EXEC",
                                    "POST_PARTITIONING"};
  return kNames[static_cast<int>(grouping)];
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
    info.gates = std::move(p.gates);
    for (int g = 0; g < 4; ++g)
      if (p.groupings & passes::In(static_cast<PassGrouping>(g)))
        info.groupings.push_back(static_cast<PassGrouping>(g));
    info.phase = p.phase;
    info.level = p.level;
    info.repeat = p.repeat;
    info.tolerance = p.tolerance;
    info.own_ops = std::move(p.own_ops);
    info.own_ops.insert(info.own_ops.end(), p.own_forms.begin(), p.own_forms.end());
    all.push_back(std::move(info));
  }
  std::stable_sort(all.begin(), all.end(), [](const PassInfo& a, const PassInfo& b) {
    return a.groupings.front() < b.groupings.front();
  });
  return all;
}

}  // namespace heddle
