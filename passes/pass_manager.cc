#include "passes/pass_manager.h"

#include <algorithm>

#include "core/error.h"
#include "passes/pass.h"

namespace heddle::passes {

#define HEDDLE_DECLARE_PASS(name) void DefinePass_##name(PassDef& pass);
#include "passes/all_passes.inc"
#undef HEDDLE_DECLARE_PASS

std::vector<PassDef> AllPasses() {
  std::vector<PassDef> passes;
  [[maybe_unused]] auto add = [&](const char* name, void (*define)(PassDef&)) {
    passes.emplace_back();
    passes.back().name = name;
    define(passes.back());
  };
#define HEDDLE_DECLARE_PASS(name) add(#name, &DefinePass_##name);
#include "passes/all_passes.inc"
#undef HEDDLE_DECLARE_PASS
  std::stable_sort(passes.begin(), passes.end(), [](const PassDef& a, const PassDef& b) {
    return a.phase != b.phase ? a.phase < b.phase : a.name < b.name;
  });
  return passes;
}

Result<std::shared_ptr<const ir::Program>> Optimize(const ir::Program& program, Scope& scope,
                                                    const OptimizeOptions& options) {
  auto current = std::make_shared<ir::Program>(program);
  if (options.level <= 0) return std::shared_ptr<const ir::Program>(current);
  PassContext context{scope, {}, options.level};
  for (const std::string& name : options.fetches)
    if (ir::VarId v = program.Find(0, name); v != ir::kNoVar) context.fetched.insert(v);
  for (const ir::Port& f : program.fetches) context.fetched.insert(f.var);
  for (const PassDef& pass : AllPasses()) {
    if (pass.level > options.level) continue;
    auto attempt = std::make_shared<ir::Program>(*current);
    auto changed = pass.run(*attempt, context);
    if (!changed.ok())
      return Status(changed.status().code(), "pass " + pass.name + ": " + changed.status().message());
    if (*changed) current = std::move(attempt);
  }
  return std::shared_ptr<const ir::Program>(std::move(current));
}

}  // namespace heddle::passes
