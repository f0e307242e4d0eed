// Commands that run as a group of ranks: --ranks.
#pragma once

#include <thread>
#include <utility>
#include <vector>

#include "heddle/ranks.h"
#include "heddle/status.h"

namespace heddle::tools {

// Calls work(rank, options) once, or, with `ranks` above 0, once for each rank of a group at the
// same time, with the rank's communicator in options.model; it is given up when the call returns.
// Rank 0's error comes first.
template <typename Options, typename Work>
Status RunRanks(int ranks, const Options& options, Work&& work) {
  if (ranks == 0) return work(0, options);
  auto group = NewRanks(ranks);
  std::vector<Status> results(group.size());
  const auto run = [&](size_t rank) {
    Options mine = options;
    mine.model.communicator = std::move(group[rank]);
    results[rank] = work(static_cast<int>(rank), std::move(mine));
  };
  std::vector<std::thread> threads;
  for (size_t r = 1; r < results.size(); ++r) threads.emplace_back(run, r);
  run(0);
  for (std::thread& t : threads) t.join();
  for (const Status& result : results)
    if (!result.ok()) return result;
  return Status::Ok();
}

}  // namespace heddle::tools
