// BoundRun: feeds and results bound once, for runs that take no memory from the heap.
//
//   heddle::BoundRun run(*compiled, {{"x", x}});
//   for (;;) {
//     ReadInto(x.mutable_data<float>());
//     if (heddle::Status s = run.Run(); !s.ok()) …
//     Use(run.outputs()[0].tensor());
//   }
//
// The results of one run are given up when the next one begins, and their memory is used for its
// results; who wants to keep one copies the Value, which shares the memory and so keeps it. Once
// the way to run is settled (RunReport::settled), a run whose shapes are known and unchanged calls
// the heap no more; libraries underneath may do so, see docs/memory.md.
//
// Ownership: keeps the compiled program, whose executor must outlive both. Threads: one at a time
// for each BoundRun; several of them, and other runs of the executor, at the same time.
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

  // Contents may be changed where they lie, or the values replaced, between runs.
  std::vector<Feed>& feeds();

  // From now on the output is written to this memory, directly where it can be (else it is copied
  // there). Contiguous, of the dtype and shape that the output has in every run: a run that finds
  // another one fails with kInvalidArgument. An empty tensor ends it.
  Status BindOutput(size_t index, Tensor memory);

  // As Executor::RunValues. Of a run that failed there are no outputs.
  Status Run(const RunOptions& options = {});
  const std::vector<Value>& outputs() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace heddle
