// Ranks: executors that run one program together, each with its own share of the data, and exchange
// values by the program's communication operators (c_allreduce_sum, all_gather, send_v2, …).
//
//   auto ranks = heddle::NewRanks(2);
//   heddle::Executor first({.communicator = ranks[0]}), second({.communicator = ranks[1]});
//   // One thread each: both run the program, and meet in its communication operators.
//
// The k-th run of communicating programs of one rank belongs to the k-th of every other. Each rank
// makes them one at a time, in the order of its calls of Run, which must be the same on all ranks.
// When such a run fails on one rank, for whatever reason (a deadline or a cancelled run included),
// it fails on all of them, with the same error; so it does when a rank ends its run, or is given
// up, while others wait for it, when the ranks' operators do not fit together, and when all wait
// for each other. The next run is not affected.
//
// Reductions combine operands along a fixed tree over the ranks (0 with 1, 2 with 3, then 0 with 2,
// …): the bits depend on nothing but the operands.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "heddle/status.h"

namespace heddle {

// One rank's part in a group of ranks. Ownership: an executor keeps its own; the group lives as
// long as one of its ranks, and a rank is given up with the last pointer to it. Threads: any.
class Communicator;

// A group of `size` ranks within this process (at least 1). Each serves one executor.
std::vector<std::shared_ptr<Communicator>> NewRanks(int size);

// A ring of some ranks of a group, as Paddle's new_group makes one: operators with this ring_id
// exchange values between these ranks only, and other ranks have none of them. Within a ring, ranks
// are counted from 0, in the order given: that is what operators mean by a root or a peer, and by
// the number of ranks.
struct RankRing {
  int64_t ring = 0;
  std::vector<int> ranks;
};

// The same with rings. Those that are not named are of all ranks. Errors: a ring is named twice, is
// empty, or names a rank twice or one that is not in the group.
Result<std::vector<std::shared_ptr<Communicator>>> NewRanks(int size,
                                                            const std::vector<RankRing>& rings);

}  // namespace heddle
