// Passes of POST_PARTITIONING on the groups of a program and on what stays.
//
// Threads: one at a time.
#pragma once

#include <memory>
#include <vector>

#include "heddle/engine.h"
#include "offload/split.h"

namespace heddle::offload {

// Runs heddle's own passes and those of `options.compile.passes` (heddle/passes/partitions.h), and
// puts what they made into `split`. `scope`: that of the model, and afterwards of the program that
// `split` joins. Not OK: which pass failed; `split` is as it was.
Result<PassReport> RunPasses(const Model& model, const std::vector<Offloader>& offloaders,
                             const OffloadOptions& options, Split* split,
                             std::shared_ptr<Scope>* scope);

}  // namespace heddle::offload
