// Compares claims, declarations that the passes relied on (passes/facts/declarations.h), with the
// facts known when a plan is made. Shapes that depend on values are compared when they are written
// (executor/run/compare_claims.h); the run is then repeated with a plan of a form without that
// claim. Programs whose runs cannot be repeated have no such claims (Target::repeats).
#pragma once

#include <memory>
#include <vector>

#include "executor/compiled.h"
#include "passes/facts/declarations.h"

namespace heddle::internal {

// The claims that the feeds contradict, each with the fact that replaces it.
std::vector<passes::NamedFact> FindOtherwise(const CompiledImpl::Form& form,
                                             const std::vector<Feed>& feeds);
// The claims that the plan's own knowledge contradicts, likewise.
std::vector<passes::NamedFact> FindOtherwise(const CompiledImpl::Form& form, const Plan& plan);

// Per variable of the optimised program: it has a non-empty claim. Null: no variable has.
std::shared_ptr<const std::vector<bool>> ClaimedIn(const passes::Optimized& optimized);
// For each of these variables of the plan's program, a fact that claims nothing.
std::vector<passes::NamedFact> WithoutClaims(const Plan& plan, const std::vector<ir::VarId>& vars);

}  // namespace heddle::internal
