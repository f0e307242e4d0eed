// The executors that examples run on, and one run of an example.
//
// A Lab makes an executor when it is first asked for. One thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "heddle/executor.h"
#include "tests/grid/grid_device.h"
#include "tests/ops/example_program.h"

namespace heddle::testing {

class Lab {
 public:
  // One thread; memory that nobody has written to holds NaN.
  Executor& Reference() { return Get(&reference_, {.threads = 1, .poison = true}); }
  Executor& Plain() { return Get(&plain_, {.threads = 1}); }
  // One that refuses results of more than some hundred megabytes.
  Executor& Small() { return Get(&small_, {.threads = 1, .memory_limit = 256 << 20}); }
  Executor& TwoThreads() { return Get(&two_, {.threads = 2, .runs_at_once = 1}); }
  Executor& EightThreads() { return Get(&eight_, {.threads = 8, .runs_at_once = 1}); }
  Executor& Emulated();
  // The CUDA device's kernels, compiled for the host.
  Executor& Grid();
  // How often an operator was placed on Grid()'s device.
  int OnGrid(const std::string& op) const;

 private:
  static Executor& Get(std::unique_ptr<Executor>* executor, const ExecutorOptions& options);
  std::shared_ptr<GridDevice> grid_device_;
  std::unique_ptr<Executor> reference_, plain_, two_, eight_, emulated_, grid_, small_;
};

struct Outcome {
  // Per output of the example; nothing where its check is kNothing.
  std::vector<Value> outputs;
  // With Operands::kKept: the copies after the run, and what they held before.
  std::vector<Value> kept, fed;
};

// Runs it `runs` times on fresh parameters and returns the last outcome.
Result<Outcome> RunExample(Executor& executor, const Example& example,
                           Operands operands = Operands::kFed, int opt_level = 0, int runs = 1);

}  // namespace heddle::testing
