// AsyncRun: a run that its caller does not wait for.
//
//   auto run = heddle::AsyncRun::Start(compiled, {{"x", tensor}});
//   ...
//   auto outputs = run.Take();  // waits
//
// Any number may be in flight on one compiled program; threads of the executor execute them in the
// order in which they were started, as many at a time as ExecutorOptions::runs_at_once permits.
// Runs that write persistable variables keep that order among all asynchronous runs of their
// scope's tree: each sees what the earlier ones wrote. Others may end in any order.
//
// Ownership: handles share their run, which goes on when the last handle is destroyed. The run
// keeps the compiled program and the feeds' memory, which must not change until it has ended. The
// executor's destructor ends waiting runs with kCancelled, and waits for those in execution and for
// callbacks. Threads: all methods may be called from any thread.
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
  // Called once, when the run has ended, on the thread that ended it: a thread of the executor, the
  // one that cancelled a waiting run, or the one that destroys the executor. Start may not have
  // returned yet, and threads that wait for the run may continue before the call. It must be quick,
  // must not throw, and must not wait for another run or destroy the executor. It may start runs,
  // but only if this one succeeded: after a run that ended with its executor, they would end at
  // once as well.
  using Callback = std::function<void(AsyncRun run)>;

  // Starts a run. Objects that `options` points to must outlive it. Take returns its errors.
  static AsyncRun Start(const CompiledProgram& compiled, std::vector<Feed> feeds,
                        const RunOptions& options = {}, Callback on_done = nullptr);

  bool done() const;
  void Wait() const;
  // False: the run had not ended at `until`.
  bool WaitUntil(std::chrono::steady_clock::time_point until) const;
  // Ends the run with kCancelled: a waiting run at once (in its turn, if runs of other ranks belong
  // to it), else when the instructions in execution have ended. No effect on a run that has ended.
  void Cancel();
  // Waits for the run; returns the outputs in the order of the fetches, in memory of their own.
  // They are moved out: a second call is an error (kInvalidArgument).
  Result<std::vector<Value>> Take();

 private:
  explicit AsyncRun(std::shared_ptr<internal::AsyncRunState> state) : state_(std::move(state)) {}
  friend struct internal::AsyncRunState;
  std::shared_ptr<internal::AsyncRunState> state_;
};

}  // namespace heddle
