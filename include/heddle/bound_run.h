// BoundRun: feeds and results that are bound once, for runs without heap allocations.
//
//   heddle::BoundRun run(*compiled, {{"x", x}});
//   for (;;) {
//     ReadInto(x.mutable_data<float>());
//     if (heddle::Status s = run.Run(); !s.ok()) …
//     Use(run.outputs()[0].tensor());
//   }
//
// The results of a run are valid until the next one begins, which reuses their memory; to keep a
// result, copy the Value, which shares the memory. Once the way to run is settled
// (RunReport::settled), a run with known and unchanged shapes does not call the heap; libraries
// that heddle uses may, see docs/memory.md.
//
// Ownership: keeps the compiled program, whose executor must outlive both. Threads: one at a time
// per BoundRun; several BoundRuns, and other runs of the executor, may run at the same time.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "heddle/executor.h"

namespace heddle {

class BoundRun {
 public:
  BoundRun(CompiledProgram compiled, std::vector<Feed> feeds);
  ~BoundRun();
  BoundRun(BoundRun&&) noexcept;
  BoundRun& operator=(BoundRun&&) noexcept;

  // The feeds. Their contents may be changed in place, or the values replaced, between runs.
  std::vector<Feed>& feeds();

  // Lets runs write the output to this memory: directly if possible, else by a copy. The memory
  // must be contiguous, with the dtype and shape that the output has in every run: a run that
  // computes another one fails with kInvalidArgument. An empty tensor ends the binding.
  Status BindOutput(size_t index, Tensor memory);

  // Runs once, as Executor::RunValues. A run that failed leaves no outputs.
  Status Run(const RunOptions& options = {});
  const std::vector<Value>& outputs() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace heddle
