// Makes a legal grouping better by the target's objective, never worse: cheaper units, groups that
// become one, and the best grouping of a few neighbours at a time.
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
