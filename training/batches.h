// The batches of a training job: what each step is fed with.
//
// What step s is fed with depends on s, the arrays and the options alone, so that a job can begin
// at any step. Ownership: arrays are shared, not copied. Threads: one at a time. Errors:
// kInvalidArgument: arrays do not fit together; those of a loader; kResourceExhausted.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "heddle/executor.h"
#include "heddle/params.h"
#include "heddle/status.h"

namespace heddle::training {

struct BatchOptions {
  int64_t batch_size = 0;  // of shards; 0: their first axis stacks batches
  bool shuffle = false;    // shards, in another order in every epoch
  bool drop_last = false;  // what is left of a shard after its last full batch
  uint64_t seed = 0;       // of the order
};

class Batches {
 public:
  // Reads a shard's arrays, whose first axis (or, with offsets, the outermost level of sequences)
  // counts items: samples or batches.
  using Loader = std::function<Result<NamedTensors>()>;

  explicit Batches(const BatchOptions& options = {}) : options_(options) {}

  // An input's batches, stacked along the first axis; step s takes batch s mod their number.
  Status AddStacked(const std::string& input, Tensor stacked);
  // The sequence offsets of each batch of such an input.
  Status AddOffsets(const std::string& input, LoD lod);
  // Arrays for several inputs. `name` is for messages and Describe. They are read now; without
  // `keep` they are let go of, and read again when their turn comes.
  Status AddShard(const std::string& name, Loader load, bool keep);
  // After all of the above: counts the steps of an epoch.
  Status Finish();

  // Steps of one pass over the shards or, without shards, over the longest stacked input; 0
  // without either.
  int64_t steps_per_epoch() const { return steps_per_epoch_; }
  Result<std::vector<Feed>> Step(int64_t step);
  // The same text for the same batches in the same order.
  std::string Describe() const;

 private:
  struct Shard {
    std::string name;
    Loader load;
    int64_t items = 0;
    int64_t batches = 0;
    NamedTensors arrays;  // empty while it is not in memory
  };
  Status Load(Shard* shard);
  void Plan(int64_t epoch);
  const std::vector<int64_t>& Order(int64_t epoch, size_t shard);

  BatchOptions options_;
  NamedTensors stacked_;
  std::vector<std::pair<std::string, LoD>> offsets_;  // of the batches of some of them
  std::vector<Shard> shards_;
  int64_t steps_per_epoch_ = 0;
  // The order of the shards in epoch_, and of the items of order_shard_ in it.
  int64_t epoch_ = -1, order_epoch_ = -1;
  std::vector<size_t> shard_order_;
  size_t order_shard_ = 0;
  std::vector<int64_t> order_;
};

}  // namespace heddle::training
