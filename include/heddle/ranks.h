// Ranks: executors that run one program as a group, each with its own share of the data, and
// exchange values by the program's communication operators (c_allreduce_sum, all_gather, send_v2,
// …).
//
//   auto ranks = heddle::NewRanks(2);
//   heddle::Executor first({.communicator = ranks[0]}), second({.communicator = ranks[1]});
//   // One thread each: both run the program, and meet in its communication operators.
//
// The k-th run of communicating programs of one rank belongs to the k-th of every other. Each rank
// makes them one at a time, in the order of its calls of Run, which must be the same on all ranks.
// If such a run fails on one rank, for whatever reason (including a deadline or a cancelled run),
// it fails on all of them with the same error. It also fails if a rank ends its run, or is
// destroyed, while others wait for it, if the ranks' operators do not match, and if all ranks wait
// for each other. The next run is not affected.
//
// Reductions combine operands along a fixed tree over the ranks (0 with 1, 2 with 3, then 0 with 2,
// …): the bits of results depend only on the operands.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "heddle/status.h"

namespace heddle {

// One rank's part in a group of ranks. Ownership: an executor keeps its own; a group lives as long
// as one of its ranks, and a rank leaves the group with its last pointer. Threads: any.
class Communicator;

// Makes a group of `size` (at least 1) ranks within this process, each for one executor.
std::vector<std::shared_ptr<Communicator>> NewRanks(int size);

// A ring of some ranks of a group, as Paddle's new_group makes: operators with this ring_id
// exchange values only between these ranks, and other ranks have no such operators. Within a ring,
// ranks are numbered from 0 in the given order; operators mean these numbers by a root, a peer, and
// the number of ranks.
struct RankRing {
  int64_t ring = 0;
  std::vector<int> ranks;
};

// The same with rings. Rings that are not named consist of all ranks. Errors: a ring is named
// twice, is empty, or names a rank twice or one that is not in the group.
Result<std::vector<std::shared_ptr<Communicator>>> NewRanks(int size,
                                                            const std::vector<RankRing>& rings);

}  // namespace heddle
