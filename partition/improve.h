// Improves a legal grouping by the target's objective, and never makes it worse: cheaper units,
// merged groups, and the best grouping of a few neighbours at a time.
//
// Ownership: changes the quotient, `claimed` and `groups` in place. Threads: one at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "partition/greedy.h"

namespace heddle::partition {

void Improve(const Matches& matches, Quotient* quotient, Claimed* claimed,
             std::vector<Group>* groups);

}  // namespace heddle::partition
