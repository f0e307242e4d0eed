// The feeds of each training step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heddle/executor.h"
#include "heddle/status.h"
#include "tools/feeds.h"
#include "tools/values/npy.h"

namespace heddle::tools {

struct DataOptions {
  std::vector<std::string> feeds;   // NAME=FILE.npy: the first axis stacks batches
  std::vector<std::string> lods;    // NAME=0,2,5: sequence offsets of each batch of a feed
  std::vector<std::string> shards;  // FILE.npz with one array for each input (tools/sequences.h)
  int64_t batch_size = 0;           // of shards; 0 = their first axis stacks batches
  bool shuffle = false;             // shards, in another order in every epoch
  bool drop_last = false;           // what is left of a shard after its last full batch
  uint64_t seed = 0;                // of the order
  uint64_t unpack_limit = 0;        // bytes of a shard's arrays; 0: as ReadNpzArrays has it
  uint64_t memory_mb = 1024;        // shards that are larger together are kept one at a time
};

// The batches of a training job. What step s is fed with depends on s and the options alone, so
// that a job can begin at any step.
class TrainData {
 public:
  // Reads and checks all files. `inputs`: of the main program.
  static Result<TrainData> Open(const DataOptions& options, const ProgramInputs& inputs);

  // Steps of one pass over the shards or, without shards, over the longest --feed; 0 without
  // either.
  int64_t steps_per_epoch() const { return steps_per_epoch_; }
  Result<std::vector<Feed>> Step(int64_t step);
  // The same text for the same batches in the same order.
  std::string Describe() const;

 private:
  struct Shard {
    std::string path;
    int64_t items = 0;  // along the first axis, or sequences
    int64_t batches = 0;
    NamedTensors arrays;  // empty while it is not in memory
  };
  Status AddFeed(const std::string& pair, const ProgramInputs& inputs);
  Status AddOffsets(const std::string& pair);
  Status AddShard(const std::string& path, bool keep);
  Status Load(Shard* shard);
  void Plan(int64_t epoch);
  const std::vector<int64_t>& Order(int64_t epoch, size_t shard);

  DataOptions options_;
  NamedTensors stacked_;                              // --feed
  std::vector<std::pair<std::string, LoD>> offsets_;  // of the batches of some of them
  std::vector<Shard> shards_;
  int64_t steps_per_epoch_ = 0;
  // The order of the shards in epoch_, and of the items of order_shard_ in it.
  int64_t epoch_ = -1, order_epoch_ = -1;
  std::vector<size_t> shard_order_;
  size_t order_shard_ = 0;
  std::vector<int64_t> order_;
};

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
