// A partitioned program as programs of its own: one for each group of the outermost block, and one
// for each run of operators that stay between them.
//
// Ownership: values. Threads: any.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "heddle/status.h"
#include "partition/partition.h"

namespace heddle::partition {

struct Part {
  std::string name;                  // "group_0", "rest_0"
  int group = -1;                    // -1: operators that stay
  std::string program;               // a ProgramDesc with feeds and fetches
  std::vector<std::string> inputs;   // in the order of the feeds
  std::vector<std::string> outputs;  // in the order of the fetches
  // What other parts leave here or take up, and which is no dense tensor: arrays and sparse rows,
  // which cannot be fed and fetched. The part does not run without it.
  std::vector<std::string> carried;
};

// In an order in which they can be run one after another: what a part is fed is what the program is
// fed, or what a part before fetches, the last one to fetch that name. Groups in inner blocks stay
// within the operator that runs the block. kDataLoss: no ProgramDesc.
Result<std::vector<Part>> PartsOf(std::string_view program_desc, const Partition& partition);

}  // namespace heddle::partition
