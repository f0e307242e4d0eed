// The files that training steps are fed from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heddle/status.h"
#include "tools/feeds.h"
#include "tools/values/npy.h"
#include "training/batches.h"

namespace heddle::tools {

struct DataOptions {
  std::vector<std::string> feeds;   // NAME=FILE.npy: the first axis stacks batches
  std::vector<std::string> lods;    // NAME=0,2,5: sequence offsets of each batch of a feed
  std::vector<std::string> shards;  // FILE.npz with one array for each input (tools/sequences.h)
  training::BatchOptions batches;
  uint64_t unpack_limit = 0;  // bytes of a shard's arrays; 0: as ReadNpzArrays has it
  uint64_t memory_mb = 1024;  // shards that are larger together are kept one at a time
};

// Reads and checks all files. `inputs`: of the main program.
Result<training::Batches> OpenTrainData(const DataOptions& options, const ProgramInputs& inputs);

// Values put into variables before a step (--set NAME=FILE.npy): row s for step s.
class StepValues {
 public:
  // Checks that there is a fitting row for each of `steps` steps.
  static Result<StepValues> Open(const std::vector<std::string>& pairs, const Program& program,
                                 int64_t steps);
  Status Apply(int64_t step, Scope& scope) const;

 private:
  struct Item {
    TensorInfo variable;
    Tensor rows;
  };
  std::vector<Item> items_;
};

}  // namespace heddle::tools
