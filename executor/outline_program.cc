#include "executor/outline_program.h"

#include <set>
#include <utility>

#include "core/error.h"
#include "executor/plan/calls/plan_calls.h"
#include "passes/functions/outline_functions.h"
#include "passes/functions/shorten.h"

namespace heddle::internal {
namespace {

std::set<ir::VarId> IdsOf(const ir::Program& program, const std::set<std::string>& names) {
  std::set<ir::VarId> ids;
  for (const std::string& name : names)
    if (const ir::VarId v = program.Find(0, name); v != ir::kNoVar) ids.insert(v);
  return ids;
}

// Claims are compared with what runs find, by the variables' names.
std::set<std::string> WithClaims(std::set<std::string> names, const passes::Optimized& optimized) {
  for (const passes::NamedFact& claim : optimized.claims)
    if (claim.block == 0) names.insert(claim.name);
  return names;
}

void Outline(const std::set<std::string>& kept, passes::Optimized* optimized) {
  const std::set<std::string> names = WithClaims(kept, *optimized);
  auto program = std::make_shared<ir::Program>(*optimized->program);
  if (!passes::OutlineFunctions(*program, IdsOf(*program, names), {.least_ns = kLeastFunctionNs}))
    return;
  if (!program->feeds.empty()) {
    const std::set<ir::VarId> ids = IdsOf(*program, names);
    program->DropUnusedVars({ids.begin(), ids.end()});
  }
  optimized->program = std::move(program);
}

}  // namespace

Result<passes::Optimized> OptimizeAndOutline(const std::shared_ptr<const ir::Program>& program,
                                             const std::shared_ptr<Scope>& scope,
                                             const OptimizeOptions& options,
                                             const passes::Target& target,
                                             const std::vector<std::string>& kept) {
  const std::set<std::string> names(kept.begin(), kept.end());
  // Passes of the user, and facts that replace declarations, may single out a layer.
  if (options.passes.custom.empty() && options.passes.dump_dir.empty() && target.found.empty()) {
    if (const auto shortened = passes::Shorten(*program, IdsOf(*program, names))) {
      Result<passes::Optimized> optimized =
          passes::Optimize(shortened->program, scope, options, target);
      if (optimized.ok() && passes::Lengthen(*shortened, *program, *scope,
                                             WithClaims(names, *optimized), &*optimized))
        return optimized;
    }
  }
  HEDDLE_ASSIGN_OR_RETURN(passes::Optimized optimized,
                          passes::Optimize(program, scope, options, target));
  Outline(names, &optimized);
  return optimized;
}

}  // namespace heddle::internal
