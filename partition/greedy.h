// The greedy grouping: puts the operators, in the order of the walk, into the group that grew last
// among those that feed it, or into a new one. docs/partition.md describes it in full.
#pragma once

#include <vector>

#include "partition/groups.h"
#include "partition/quotient.h"

namespace heddle::partition {

// Per operator: whether it is in a group, of any target.
using Claimed = std::vector<bool>;

// Why an operator that a unit takes is in no group.
enum class Left : uint8_t {
  kNo,
  kUnreachable,  // no unit that takes it can be reached from a start unit
  kLimits,       // it exceeds a limit by itself
  kSmall,        // its group was smaller than min_group
  kCostly,       // its group cost more than the host does
};

// Groups the operators that are not claimed yet for one target; claims and contracts the groups.
// `left`: one entry per operator.
std::vector<Group> GroupGreedily(const Matches& matches, Quotient* quotient, Claimed* claimed,
                                 std::vector<Left>* left);

}  // namespace heddle::partition
