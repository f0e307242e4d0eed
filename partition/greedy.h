// The greedy grouping: operators in the order of the walk, each into the group that grew last among
// those that feed it, or into a new one. docs/partition.md says it in full.
#pragma once

#include <vector>

#include "partition/groups.h"
#include "partition/quotient.h"

namespace heddle::partition {

// Which operators are in a group; of any target.
using Claimed = std::vector<bool>;

// Why an operator that a unit takes is in no group all the same.
enum class Left : uint8_t {
  kNo,
  kUnreachable,  // no unit that takes it is reachable from a start unit
  kLimits,       // alone it breaks a limit
  kSmall,        // its group was smaller than min_group
  kCostly,       // its group cost more than the host
};

// The groups of one target among the operators that are not claimed, which it claims and contracts.
// `left`: for each operator.
std::vector<Group> GroupGreedily(const Matches& matches, Quotient* quotient, Claimed* claimed,
                                 std::vector<Left>* left);

}  // namespace heddle::partition
