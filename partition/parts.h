// A partitioned program as separate programs: one for each group of the outermost block, and one
// for each run of operators between them that stay on the host.
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
  int group = -1;                    // -1: operators that stay on the host
  std::string program;               // a ProgramDesc with feeds and fetches
  std::vector<std::string> inputs;   // in the order of the feeds
  std::vector<std::string> outputs;  // in the order of the fetches
  // Variables that the part shares with other parts and that are not dense tensors: arrays and
  // sparse rows, which cannot be fed and fetched. The part cannot run without them.
  std::vector<std::string> carried;
};

// The parts in an order in which they can be run. A part is fed what the program is fed, or what an
// earlier part fetches: the last one that fetches that name. Groups in inner blocks stay inside the
// operator that runs the block. kDataLoss: not a ProgramDesc.
Result<std::vector<Part>> PartsOf(std::string_view program_desc, const Partition& partition);

}  // namespace heddle::partition
