#include "tests/ops/lab.h"

#include <utility>

#include "heddle/ranks.h"

namespace heddle::testing {

Executor& Lab::Get(std::unique_ptr<Executor>* executor, const ExecutorOptions& options) {
  if (*executor == nullptr) {
    ExecutorOptions of_one_rank = options;
    of_one_rank.communicator = NewRanks(1)[0];
    *executor = std::make_unique<Executor>(of_one_rank);
  }
  return **executor;
}

Executor& Lab::Emulated() {
  if (emulated_ != nullptr) return *emulated_;
  // Lazy: no threads, and a missing wait goes wrong every time.
  return Get(&emulated_, {.threads = 1, .device = NewEmulatedDevice({.lazy = true})});
}

Executor& Lab::Grid() {
  if (grid_device_ == nullptr) grid_device_ = std::make_shared<GridDevice>();
  return Get(&grid_, {.threads = 1, .device = grid_device_});
}

int Lab::OnGrid(const std::string& op) const {
  if (grid_device_ == nullptr) return 0;
  const auto covered = grid_device_->covered();
  const auto found = covered.find(op);
  return found == covered.end() ? 0 : found->second;
}

Result<Outcome> RunExample(Executor& executor, const Example& example, Operands operands,
                           int opt_level, int runs) {
  HEDDLE_ASSIGN_OR_RETURN(const ExampleProgram program, BuildProgram(example, operands));
  CompileOptions options;
  options.fetches = program.fetches;
  options.opt_level = opt_level;
  options.seed = example.seed;
  std::vector<Value> values;
  for (int run = 0; run < runs; ++run) {
    HEDDLE_ASSIGN_OR_RETURN(const CompiledProgram compiled,
                            executor.Compile(program.program, program.NewScope(), options));
    HEDDLE_ASSIGN_OR_RETURN(values, executor.RunValues(compiled, program.feeds));
  }
  Outcome outcome;
  auto next = values.begin();
  for (const ExampleOutput& out : example.outputs)
    outcome.outputs.push_back(out.check == Check::kNothing ? Value() : std::move(*next++));
  outcome.kept.assign(std::make_move_iterator(next), std::make_move_iterator(values.end()));
  outcome.fed = program.kept;
  return outcome;
}

}  // namespace heddle::testing
