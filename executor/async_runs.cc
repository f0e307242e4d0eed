#include "executor/async_runs.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "core/error.h"
#include "executor/compiled.h"
#include "executor/executor_impl.h"

namespace heddle::internal {
namespace {

Status Cancelled() {
  return Status(StatusCode::kCancelled, "the run was cancelled before it began");
}

Status Late() {
  return Status(StatusCode::kDeadlineExceeded, "the run's deadline came before its turn");
}

}  // namespace

AsyncRunState::AsyncRunState(std::shared_ptr<AsyncRuns> of, const CompiledProgram& compiled_program,
                             std::vector<Feed> fed, const RunOptions& run_options,
                             AsyncRun::Callback callback)
    : runs(std::move(of)),
      compiled(compiled_program),
      feeds(std::move(fed)),
      options(run_options),
      on_done(std::move(callback)) {}

void AsyncRunState::Forward::operator()() const { state->runs->Cancel(*state); }

AsyncRuns::AsyncRuns(RunResources& resources, PlanService& plans)
    : resources_(&resources),
      plans_(&plans),
      most_workers_(static_cast<size_t>(resources.runs_at_once > 0 ? resources.runs_at_once
                                                                   : resources.threads)),
      of_a_rank_(resources.communicator != nullptr) {}

const void* AsyncRuns::LineOf(const AsyncRunState& run) {
  return &run.compiled.impl()->scope->write_mutex();
}

// Runs that communicate are treated like writing ones, so that all ranks make them in the same
// order.
bool AsyncRuns::Writes(const AsyncRunState& run) {
  return run.compiled.impl()->writes_scope || run.compiled.impl()->communicates;
}

// Other ranks wait for this run: even if it is cancelled it takes its turn, and fails together with
// them.
bool AsyncRuns::EndsInItsTurn(const AsyncRunState& run) const {
  return of_a_rank_ && run.compiled.impl()->communicates;
}

void AsyncRuns::Add(const std::shared_ptr<AsyncRunState>& run) {
  try {
    Queue(run);
  } catch (const std::exception& e) {  // no memory, or no thread for deadlines
    const Status why = ResourceExhausted("the run could not be started: ", e.what());
    if (run->number == 0)
      End(*run, why, {});
    else
      EndWaiting(*run, why, true);
  }
}

void AsyncRuns::Queue(const std::shared_ptr<AsyncRunState>& run) {
  const std::stop_token wish = run->options.stop;
  run->options.stop = run->stop.get_token();
  const bool may_end = !EndsInItsTurn(*run);
  if (run->options.deadline && may_end)
    run->watch_id =
        resources_->watcher.At(*run->options.deadline, [weak = std::weak_ptr(run), this] {
          if (const auto late = weak.lock()) EndWaiting(*late, Late(), false);
        });
  Status refused;
  {
    MutexLock lock(mutex_);
    run->process = process_;
    lines_[LineOf(*run)].waiting.push_back(run);
    run->number = ++started_;
    ++waiting_;
    if (closed_) {
      refused = Cancelled();
    } else {
      if (idle_ > 0) changed_.NotifyOne();
      // An idle thread may have been notified for an earlier run and not have woken yet.
      if (waiting_ > idle_ && workers_.size() < most_workers_) refused = StartWorker();
    }
  }
  if (!refused.ok()) EndWaiting(*run, refused, true);
  // If the deadline came before the run was in a line, the watcher found no run to end.
  if (may_end && run->options.deadline &&
      std::chrono::steady_clock::now() >= *run->options.deadline)
    EndWaiting(*run, Late(), true);
  if (wish.stop_possible()) run->forward.emplace(wish, AsyncRunState::Forward{run.get()});
}

// If no further thread can be had, the existing ones make the run.
Status AsyncRuns::StartWorker() try {
  workers_.emplace_back([this] { Work(); });
  return Status::Ok();
} catch (const std::exception& e) {
  return workers_.empty() ? ResourceExhausted("no thread for asynchronous runs: ", e.what())
                          : Status::Ok();
}

// Of the lines whose first run may go, takes the first run that was started first.
std::shared_ptr<AsyncRunState> AsyncRuns::Next() {
  Line* best = nullptr;
  for (auto& [scope, line] : lines_) {
    if (line.waiting.empty() || line.writing) continue;
    if (line.going > 0 && Writes(*line.waiting.front())) continue;
    if (best == nullptr || line.waiting.front()->number < best->waiting.front()->number)
      best = &line;
  }
  if (best == nullptr) return nullptr;
  std::shared_ptr<AsyncRunState> run = std::move(best->waiting.front());
  best->waiting.pop_front();
  ++best->going;
  best->writing = Writes(*run);
  --waiting_;
  run->phase = AsyncRunState::Phase::kGoing;
  return run;
}

void AsyncRuns::Leave(AsyncRunState& run) {
  // This is a child, forked inside the run: its lines are others.
  if (run.process != process_) return;
  const auto line = lines_.find(LineOf(run));
  --line->second.going;
  line->second.writing = false;
  if (line->second.going == 0 && line->second.waiting.empty()) lines_.erase(line);
}

void AsyncRuns::Work() {
  RunMemory memory;  // kept from run to run
  MutexLock lock(mutex_);
  for (;;) {
    std::shared_ptr<AsyncRunState> run = Next();
    if (run == nullptr) {
      if (closed_) return;
      ++idle_;
      changed_.Wait(mutex_);
      --idle_;
      continue;
    }
    lock.Unlock();
    Make(std::move(run), memory);
    lock.Lock();
  }
}

// Owns `run`: this may be the last reference, and destroying it may run callers' code, for which
// the mutex must be free.
void AsyncRuns::Make(std::shared_ptr<AsyncRunState> run, RunMemory& memory) {
  if (run->watch_id != 0) resources_->watcher.Remove(run->watch_id);
  std::vector<Value> values;
  Status status = RunSession::Run(
      *resources_, *plans_, {*run->compiled.impl(), run->feeds, run->options, memory, &values});
  {
    MutexLock lock(mutex_);
    Leave(*run);
    // The end of this run may release several runs of its line; this thread takes one of them.
    if (idle_ > 0 && waiting_ > 0) changed_.NotifyAll();
  }
  End(*run, std::move(status), std::move(values));
}

void AsyncRuns::End(AsyncRunState& run, Status status, std::vector<Value> values) {
  run.feeds.clear();  // gives their memory back to the caller
  {
    MutexLock lock(mutex_);
    run.phase = AsyncRunState::Phase::kEnded;
    run.status = std::move(status);
    run.values = std::move(values);
    // In a child, the waiting threads do not exist.
    if (run.process == process_) run.ended.NotifyAll();
  }
  if (const AsyncRun::Callback callback = std::exchange(run.on_done, nullptr))
    callback(AsyncRunState::HandleOf(run.shared_from_this()));
}

void AsyncRuns::EndWaiting(AsyncRunState& run, const Status& why, bool forget_deadline) {
  std::shared_ptr<AsyncRunState> kept;
  uint64_t process = 0;
  {
    MutexLock lock(mutex_);
    if (run.phase != AsyncRunState::Phase::kWaiting) return;
    const auto line = lines_.find(LineOf(run));
    if (line == lines_.end()) return;
    auto& waiting = line->second.waiting;
    const auto at = std::find_if(waiting.begin(), waiting.end(),
                                 [&](const auto& other) { return other.get() == &run; });
    if (at == waiting.end()) return;
    kept = std::move(*at);
    waiting.erase(at);
    --waiting_;
    run.phase = AsyncRunState::Phase::kGoing;  // so that no other thread ends it
    ++ending_;
    process = process_;
    if (line->second.going == 0 && waiting.empty()) lines_.erase(line);
    // The next run of the line may be released.
    if (idle_ > 0 && waiting_ > 0) changed_.NotifyAll();
  }
  if (forget_deadline && run.watch_id != 0) resources_->watcher.Remove(run.watch_id);
  End(run, why, {});
  MutexLock lock(mutex_);
  if (process != process_) return;  // forked meanwhile: the child began to count anew
  --ending_;
  if (closed_) changed_.NotifyAll();
}

void AsyncRuns::Cancel(AsyncRunState& run) {
  run.stop.request_stop();
  if (EndsInItsTurn(run)) return;
  EndWaiting(run, Cancelled(), true);
}

// True also for a run of the parent process, which will not end in this one.
bool AsyncRuns::HasEnded(const AsyncRunState& run) const {
  return run.phase == AsyncRunState::Phase::kEnded || run.process != process_;
}

bool AsyncRuns::IsDone(const AsyncRunState& run) {
  MutexLock lock(mutex_);
  return HasEnded(run);
}

bool AsyncRuns::Wait(AsyncRunState& run,
                     const std::optional<std::chrono::steady_clock::time_point>& until) {
  MutexLock lock(mutex_);
  while (!HasEnded(run)) {
    if (!until) {
      run.ended.Wait(mutex_);
    } else if (!run.ended.WaitUntil(mutex_, *until)) {
      return HasEnded(run);
    }
  }
  return true;
}

Result<std::vector<Value>> AsyncRuns::Take(AsyncRunState& run) {
  Wait(run);
  MutexLock lock(mutex_);
  if (run.phase != AsyncRunState::Phase::kEnded)
    return Status(StatusCode::kCancelled, "the run is another process's: this one was forked");
  if (!run.status.ok()) return run.status;
  if (std::exchange(run.taken, true))
    return InvalidArgument("the outputs of this run were taken before");
  return std::move(run.values);
}

// For a child process. Waiting runs are abandoned: what they hold belongs to callers that do not
// exist here.
void AsyncRuns::ForgetThreads() HEDDLE_NO_THREAD_SAFETY_ANALYSIS {
  LeaveBehind(changed_);
  LeaveBehind(lines_);
  LeaveBehind(workers_);
  idle_ = 0;
  waiting_ = 0;
  ending_ = 0;
  ++process_;
}

void AsyncRuns::Close() {
  std::vector<std::thread> workers;
  MutexLock lock(mutex_);
  closed_ = true;
  while (waiting_ > 0) {
    const auto line = std::find_if(lines_.begin(), lines_.end(),
                                   [](const auto& l) { return !l.second.waiting.empty(); });
    std::shared_ptr<AsyncRunState> run = line->second.waiting.front();
    lock.Unlock();
    EndWaiting(*run, Cancelled(), true);
    run = nullptr;
    lock.Lock();
  }
  while (ending_ > 0) changed_.Wait(mutex_);
  changed_.NotifyAll();
  workers = std::move(workers_);
  lock.Unlock();
  for (std::thread& worker : workers) worker.join();
}

}  // namespace heddle::internal

namespace heddle {

using internal::AsyncRunState;

AsyncRun AsyncRun::Start(const CompiledProgram& compiled, std::vector<Feed> feeds,
                         const RunOptions& options, Callback on_done) {
  const auto& runs = compiled.impl()->executor->async_runs();
  auto state = std::make_shared<AsyncRunState>(runs, compiled, std::move(feeds), options,
                                               std::move(on_done));
  runs->Add(state);
  return AsyncRun(std::move(state));
}

bool AsyncRun::done() const { return state_->runs->IsDone(*state_); }
void AsyncRun::Wait() const { state_->runs->Wait(*state_); }
bool AsyncRun::WaitUntil(std::chrono::steady_clock::time_point until) const {
  return state_->runs->Wait(*state_, until);
}
void AsyncRun::Cancel() { state_->runs->Cancel(*state_); }
Result<std::vector<Value>> AsyncRun::Take() { return state_->runs->Take(*state_); }

}  // namespace heddle
