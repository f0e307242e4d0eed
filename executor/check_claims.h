// Compares the declarations that the passes went by (passes/declarations.h) with what is there when
// a plan is made. Runs are not concerned: a plan holds for what it was made for.
#pragma once

#include <vector>

#include "executor/compiled.h"
#include "passes/declarations.h"

namespace heddle::internal {

// The claims of the form that do not hold for what is fed, with what stands for them from now on.
std::vector<passes::NamedFact> FindOtherwise(const CompiledImpl::Form& form,
                                             const std::vector<Feed>& feeds);
// The same for what the plan of the form's program knows.
std::vector<passes::NamedFact> FindOtherwise(const CompiledImpl::Form& form, const Plan& plan);

}  // namespace heddle::internal
