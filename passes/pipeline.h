// The order of the passes: one list that names them all.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "heddle/pass.h"
#include "passes/pass.h"

namespace heddle::passes {

inline constexpr int kGroupings = 4;
// For each PassGrouping the names of its passes, in the order they run. A pass may stand in several
// groupings.
using Pipeline = std::array<std::vector<std::string>, kGroupings>;

// The list of heddle's own passes.
Pipeline HeddlePipeline();

// Adds a user's passes. Those without a neighbour come first in their groupings, in the order they
// are given; each of the others then goes directly before or after its neighbour. An error when the
// grouping has no such neighbour (yet), or when a pass names two. No cycle can arise, since a
// neighbour is in the list already.
Status AddCustom(const std::vector<CustomPass>& custom, Pipeline* pipeline);

// An error when the list and the passes do not name each other: a pass that the list does not name,
// a name without a pass, a name that stands twice in one grouping, two passes of one name.
Status CheckPipeline(const Pipeline& pipeline, const std::vector<PassDef>& passes);

}  // namespace heddle::passes
