// Checkpoints of a training job: a directory with the newest few of them.
//
//   DIR/step-00000120/persistables.pdiparams   parameters and optimizer state, combined layout
//                     fetch_<k>.npy            what was fetched so far (with --out)
//                     train.json               everything else, sizes and checksums of the files,
//                                              and a checksum of itself
//
// A checkpoint is made aside, flushed, and gets its name when it is complete: under `step-…` there
// is all of it or nothing, at whatever moment the process or the machine stops.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "heddle/params.h"
#include "heddle/status.h"
#include "tools/values/durable.h"

namespace heddle::training {

struct TrainState {
  int64_t step = 0;      // steps done
  uint64_t program = 0;  // hash of the main program
  uint64_t seed = 0;
  std::string generator;  // Generator::State()
  std::string data;       // Batches::Describe()
  NamedTensors fetched;   // by variable, stacked over steps; saved where there are any
};

// Of a program that was made in memory: of all that it says.
uint64_t HashOf(const Program& program);

// Not for use by several threads.
class CheckpointDirectory {
 public:
  // Makes the directory where it is missing, takes its lock and removes what a killed process left.
  Status Open(const std::string& path, int keep);

  // Steps of the checkpoints there, ascending.
  std::vector<int64_t> Steps() const;
  // Reads the newest checkpoint that is undamaged, its parameters into `scope`; nullopt when there
  // is none. Each damaged one that was passed over adds a line to `warnings`. One that belongs to
  // another job than `job` (main program, data) is an error.
  Result<std::optional<TrainState>> LoadNewest(const TrainState& job, const Program& program,
                                               Scope& scope,
                                               std::vector<std::string>* warnings) const;
  // Adds a checkpoint and removes those beyond the newest `keep`.
  Status Save(const Program& program, const Scope& scope, const TrainState& state);

  std::string PathOf(int64_t step) const;

 private:
  // `sealed`: a checksum says that it is as it was written.
  Result<TrainState> ReadState(int64_t step, bool* sealed) const;
  // `another`: the error is that it belongs to another job, and nothing vouches for that.
  Result<TrainState> Load(int64_t step, const TrainState& job, const Program& program, Scope& scope,
                          bool* another) const;
  void RemoveLeftovers() const;
  void Remove(int64_t step) const;

  std::string path_;
  int keep_ = 1;
  tools::DirectoryLock lock_;
};

}  // namespace heddle::training
