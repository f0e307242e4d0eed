// AsyncRuns: the asynchronous runs of one executor, those that wait and those that are being made.
//
// Runs wait in lines, one per tree of scopes, and leave a line in order: a run that writes to the
// scope goes alone in its line, others go concurrently. Of the lines whose first run may go, the
// run that was started first is next. Worker threads make the runs, at most as many as runs may be
// under way: the first run starts one worker, and another is started when all are busy.
//
// Ownership: every run keeps this object alive; the executor is not used after Close. Threads: all
// methods may be called from any thread, except Close from a worker.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include "core/thread_annotations.h"
#include "core/threads/at_fork.h"
#include "executor/plan_service.h"
#include "executor/run_resources.h"
#include "executor/run_session.h"
#include "heddle/async_run.h"

namespace heddle::internal {

class AsyncRuns;

struct AsyncRunState : std::enable_shared_from_this<AsyncRunState> {
  enum class Phase { kWaiting, kGoing, kEnded };
  AsyncRunState(std::shared_ptr<AsyncRuns> runs, const CompiledProgram& compiled_program,
                std::vector<Feed> fed, const RunOptions& run_options, AsyncRun::Callback callback);
  static AsyncRun HandleOf(std::shared_ptr<AsyncRunState> state) {
    return AsyncRun(std::move(state));
  }

  // Constant after construction, and used by the run alone.
  const std::shared_ptr<AsyncRuns> runs;
  CompiledProgram compiled;
  std::vector<Feed> feeds;
  RunOptions options;
  AsyncRun::Callback on_done;
  std::stop_source stop;
  uint64_t number = 0;    // in the order of starts; 0: in no line
  uint64_t watch_id = 0;  // of the watcher's entry for the deadline; 0: none

  // Guarded by the mutex of `runs`.
  uint64_t process = 0;  // in which it was started; it is made in no other one
  Phase phase = Phase::kWaiting;
  bool taken = false;
  Status status;
  std::vector<Value> values;
  CondVar ended;

  // Declared last, so that it is destroyed first: its destructor waits for the callback, which uses
  // the rest.
  struct Forward {
    AsyncRunState* state;
    void operator()() const;
  };
  std::optional<std::stop_callback<Forward>> forward;
};

class AsyncRuns : public std::enable_shared_from_this<AsyncRuns> {
 public:
  AsyncRuns(RunResources& resources, PlanService& plans);

  void Add(const std::shared_ptr<AsyncRunState>& run) HEDDLE_EXCLUDES(mutex_);
  void Cancel(AsyncRunState& run) HEDDLE_EXCLUDES(mutex_);
  bool IsDone(const AsyncRunState& run) HEDDLE_EXCLUDES(mutex_);
  bool Wait(AsyncRunState& run,
            const std::optional<std::chrono::steady_clock::time_point>& until = std::nullopt)
      HEDDLE_EXCLUDES(mutex_);
  Result<std::vector<Value>> Take(AsyncRunState& run) HEDDLE_EXCLUDES(mutex_);
  // Ends waiting runs, waits for those being made, and refuses further ones.
  void Close() HEDDLE_EXCLUDES(mutex_);

 private:
  struct Line {
    std::deque<std::shared_ptr<AsyncRunState>> waiting;
    int going = 0;
    bool writing = false;  // a run that writes to the scope is under way
  };
  using Lines = std::map<const void*, Line>;

  static const void* LineOf(const AsyncRunState& run);
  static bool Writes(const AsyncRunState& run);
  bool EndsInItsTurn(const AsyncRunState& run) const;
  void Work() HEDDLE_EXCLUDES(mutex_);
  Status StartWorker() HEDDLE_REQUIRES(mutex_);
  void Queue(const std::shared_ptr<AsyncRunState>& run) HEDDLE_EXCLUDES(mutex_);
  void Make(std::shared_ptr<AsyncRunState> run, RunMemory& memory) HEDDLE_EXCLUDES(mutex_);
  std::shared_ptr<AsyncRunState> Next() HEDDLE_REQUIRES(mutex_);
  void Leave(AsyncRunState& run) HEDDLE_REQUIRES(mutex_);
  // Ends a run if it still waits. `forget_deadline`: must be false on the watcher's thread.
  void EndWaiting(AsyncRunState& run, const Status& why, bool forget_deadline)
      HEDDLE_EXCLUDES(mutex_);
  void End(AsyncRunState& run, Status status, std::vector<Value> values) HEDDLE_EXCLUDES(mutex_);
  bool HasEnded(const AsyncRunState& run) const HEDDLE_REQUIRES(mutex_);
  void ForgetThreads();

  RunResources* const resources_;  // invalid after Close
  PlanService* const plans_;
  const size_t most_workers_;
  const bool of_a_rank_;  // the executor is a rank of a group
  Mutex mutex_;
  CondVar changed_;
  Lines lines_ HEDDLE_GUARDED_BY(mutex_);
  std::vector<std::thread> workers_ HEDDLE_GUARDED_BY(mutex_);
  size_t idle_ HEDDLE_GUARDED_BY(mutex_) = 0;     // workers that wait for runs
  size_t waiting_ HEDDLE_GUARDED_BY(mutex_) = 0;  // runs in all lines
  uint64_t started_ HEDDLE_GUARDED_BY(mutex_) = 0;
  int ending_ HEDDLE_GUARDED_BY(mutex_) = 0;  // calls of EndWaiting under way; Close waits for them
  bool closed_ HEDDLE_GUARDED_BY(mutex_) = false;
  uint64_t process_ HEDDLE_GUARDED_BY(mutex_) = 0;  // counts the forks that led to this process
  const AtFork at_fork_{mutex_, [this] { ForgetThreads(); }};
};

}  // namespace heddle::internal
