// Compares the declarations that the passes went by (passes/facts/declarations.h) with what is
// there when a plan is made. What the plan does not know either, since it follows from values, is
// compared when it is written (executor/run/compare_claims.h); the run then is repeated with a plan
// of a form without that claim. Programs whose runs cannot be repeated have no such claims
// (Target::repeats).
#pragma once

#include <memory>
#include <vector>

#include "executor/compiled.h"
#include "passes/facts/declarations.h"

namespace heddle::internal {

// The claims of the form that do not hold for what is fed, with what stands for them from now on.
std::vector<passes::NamedFact> FindOtherwise(const CompiledImpl::Form& form,
                                             const std::vector<Feed>& feeds);
// The same for what the plan of the form's program knows.
std::vector<passes::NamedFact> FindOtherwise(const CompiledImpl::Form& form, const Plan& plan);

// Per variable of the optimised program: it has a claim that says something. Null: none has.
std::shared_ptr<const std::vector<bool>> ClaimedIn(const passes::Optimized& optimized);
// For each of these variables of the plan's program, a fact that claims nothing.
std::vector<passes::NamedFact> WithoutClaims(const Plan& plan, const std::vector<ir::VarId>& vars);

}  // namespace heddle::internal
