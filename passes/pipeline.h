// The order of the passes: one list that names them all.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "heddle/pass.h"
#include "passes/pass.h"

namespace heddle::passes {

inline constexpr int kGroupings = 4;
// For each PassGrouping, the names of its passes in the order in which they run. A pass may be in
// several groupings.
using Pipeline = std::array<std::vector<std::string>, kGroupings>;

// heddle's own list.
Pipeline HeddlePipeline();

// Adds a user's passes. Those that name no neighbour come first in their groupings, in the given
// order; each of the others then comes directly before or after its neighbour. An error if the
// grouping has no such neighbour (yet), or if a pass names two. There can be no cycle, since a
// neighbour is in the list already.
Status AddCustom(const std::vector<CustomPass>& custom, Pipeline* pipeline);

// An error if the list and the passes do not match: a pass that the list lacks, a name without a
// pass, a name twice in one grouping, or two passes with one name.
Status CheckPipeline(const Pipeline& pipeline, const std::vector<PassDef>& passes);

}  // namespace heddle::passes
