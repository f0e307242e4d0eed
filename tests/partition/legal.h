// The rules of legal groups, and the best of all legal groupings, in the plainest way.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "partition/groups.h"
#include "partition/partition.h"

namespace heddle::partition {

// Why the groups of a block are not legal; empty: they are.
std::string WhyIllegal(const Matches& matches, const BlockPartition& block);

struct Best {
  double cost = 0;              // the lowest
  int covered = 0, groups = 0;  // the most operators, in the fewest groups
};
// Of all legal groupings, where at most `most` operators are taken by a unit or are helpers.
std::optional<Best> BestOfAll(const Matches& matches, size_t most);

}  // namespace heddle::partition
