// AsyncRun: a run that goes on while its caller does something else.
//
//   auto run = heddle::AsyncRun::Start(compiled, {{"x", tensor}});
//   ...
//   auto outputs = run.Take();  // waits
//
// Any number may be in flight on one compiled program; threads of the executor make them, as many
// at a time as ExecutorOptions let be under way, in the order in which they were started. Runs that
// write to persistable variables keep that order among all asynchronous runs on their scope's tree:
// each sees what those before it wrote. Others may end in any order.
//
// Ownership: a handle shares its run; the last one may go while the run goes on. The run keeps the
// compiled program and the feeds' memory, which must not change until it has ended. An executor
// that goes ends what waits with kCancelled, and waits for what is being made and for callbacks.
// Threads: all methods from any thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "heddle/executor.h"
#include "heddle/run_options.h"
#include "heddle/status.h"
#include "heddle/value.h"

namespace heddle {

namespace internal {
struct AsyncRunState;
}  // namespace internal

class AsyncRun {
 public:
  // Called once, when the run has ended, on the thread that ended it: one of the executor's, that
  // of whoever cancelled the run while it waited, or that which destroys the executor. Start may
  // not have returned yet, and threads that waited for the run may go on before the call. It must
  // be quick and must not throw, nor wait for another run or destroy the executor. It may start
  // runs, but only when this one succeeded: a run that ends with its executor ends what it starts,
  // too.
  using Callback = std::function<void(AsyncRun run)>;

  // Objects that `options` points to must outlive the run. Errors are those of the run: Take
  // returns them.
  static AsyncRun Start(const CompiledProgram& compiled, std::vector<Feed> feeds,
                        const RunOptions& options = {}, Callback on_done = nullptr);

  bool done() const;
  void Wait() const;
  // False: `until` came first.
  bool WaitUntil(std::chrono::steady_clock::time_point until) const;
  // The run ends with kCancelled: at once when it waits for its turn (in its turn, when runs of
  // other ranks belong to it), else when the instructions in execution have ended. Nothing happens
  // to a run that has ended.
  void Cancel();
  // Waits; the outputs in the order of the fetches, in memory of their own. They are moved out: a
  // second call is an error (kInvalidArgument).
  Result<std::vector<Value>> Take();

 private:
  explicit AsyncRun(std::shared_ptr<internal::AsyncRunState> state) : state_(std::move(state)) {}
  friend struct internal::AsyncRunState;
  std::shared_ptr<internal::AsyncRunState> state_;
};

}  // namespace heddle
