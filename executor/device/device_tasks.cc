#include "executor/device/device_tasks.h"

#include <algorithm>
#include <utility>

#include "scheduler/spin.h"

namespace heddle {

DeviceTasks::DeviceTasks(const DevicePlan& plan, const Calls& calls)
    : plan_(plan), calls_(calls), finished_(plan.tasks.size(), false) {
  needs_.reserve(plan.tasks.size());
  for (const DeviceTask& task : plan.tasks) needs_.push_back(task.needs + 1);
}

void DeviceTasks::Participate(int participant) {
  MutexLock lock(mutex_);
  while (!over_) {
    if (MayDispatch()) {
      Dispatch(participant);
    } else if (!ready_.empty()) {
      Execute(participant);
    } else if (IsOver()) {
      over_ = true;
      changed_.NotifyAll();
    } else {
      const uint64_t begin = on_wait_ != nullptr ? Ticks() : 0;
      changed_.Wait(mutex_);
      if (on_wait_ != nullptr) (*on_wait_)(participant, begin);
    }
  }
}

// While this thread dispatches, threads that finish tasks do not dispatch: it checks news_ again
// itself.
void DeviceTasks::Dispatch(int participant) {
  dispatching_ = true;
  seen_ = news_.load(std::memory_order_relaxed);
  mutex_.unlock();
  bool done = false;
  Error error = calls_.advance(participant, &done);
  mutex_.lock();
  dispatching_ = false;
  dispatched_ = done;
  if (!error.status.ok()) Fail(std::move(error));
}

void DeviceTasks::HandOver(uint32_t task) {
  MutexLock lock(mutex_);
  if (--needs_[task] > 0 || failed_) return;
  ready_.push_back(task);
  changed_.NotifyOne();
}

void DeviceTasks::Poke() {
  MutexLock lock(mutex_);
  news_.fetch_add(1, std::memory_order_release);
  changed_.NotifyAll();
}

bool DeviceTasks::Finished(std::span<const uint32_t> tasks) {
  MutexLock lock(mutex_);
  return std::all_of(tasks.begin(), tasks.end(),
                     [&](uint32_t t) HEDDLE_REQUIRES(mutex_) { return finished_[t]; });
}

// Takes a ready task: the first that need not wait for the device, else the first one.
uint32_t DeviceTasks::Choose() {
  auto at = std::find_if(ready_.begin(), ready_.end(),
                         [&](uint32_t t) { return calls_.can_start(plan_.tasks[t]); });
  if (at == ready_.end()) at = ready_.begin();
  const uint32_t task = *at;
  ready_.erase(at);
  return task;
}

// Executes a task. One thread is woken for each task that becomes ready; this thread looks for work
// too.
void DeviceTasks::Execute(int participant) {
  const uint32_t task = Choose();
  ++running_;
  mutex_.unlock();
  Error error = calls_.execute(plan_.tasks[task], participant);
  mutex_.lock();
  --running_;
  finished_[task] = true;
  news_.fetch_add(1, std::memory_order_release);
  if (on_end_ != nullptr) (*on_end_)();
  if (!error.status.ok()) Fail(std::move(error));
  if (failed_) return;
  for (uint32_t next : plan_.tasks[task].next) {
    if (--needs_[next] > 0) continue;
    ready_.push_back(next);
    changed_.NotifyOne();
  }
}

void DeviceTasks::Fail(Error error) {
  if (!failed_) error_ = std::move(error);
  failed_ = true;
  ready_.clear();
}

DeviceTasks::Error DeviceTasks::TakeError() {
  MutexLock lock(mutex_);
  return std::exchange(error_, Error());
}

}  // namespace heddle
