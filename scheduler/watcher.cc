#include "scheduler/watcher.h"

namespace heddle {

Watcher::~Watcher() {
  {
    MutexLock lock(mutex_);
    stop_ = true;
  }
  changed_.NotifyAll();
  if (thread_.joinable()) thread_.join();
}

uint64_t Watcher::At(Time when, std::function<void()> fn) {
  MutexLock lock(mutex_);
  const uint64_t id = next_id_++;
  const auto at = due_.emplace(std::make_pair(when, id), std::move(fn)).first;
  when_.emplace(id, when);
  if (!thread_.joinable())
    thread_ = std::thread([this] { Work(); });
  else if (at == due_.begin())
    changed_.NotifyAll();
  return id;
}

void Watcher::Remove(uint64_t id) {
  MutexLock lock(mutex_);
  if (const auto at = when_.find(id); at != when_.end()) {
    due_.erase({at->second, id});
    when_.erase(at);
  }
  while (calling_ == id) changed_.Wait(mutex_);
}

// For a child process: all functions belong to runs of threads that it does not have.
void Watcher::ForgetThreads() HEDDLE_NO_THREAD_SAFETY_ANALYSIS {  // it has one thread
  LeaveBehind(thread_);
  LeaveBehind(changed_);
  LeaveBehind(due_);
  LeaveBehind(when_);
  calling_ = 0;
}

void Watcher::Work() {
  MutexLock lock(mutex_);
  while (!stop_) {
    if (due_.empty()) {
      changed_.Wait(mutex_);
      continue;
    }
    const auto first = due_.begin();
    if (std::chrono::steady_clock::now() < first->first.first) {
      const Time until = first->first.first;
      changed_.WaitUntil(mutex_, until);
      continue;
    }
    auto fn = std::move(first->second);
    calling_ = first->first.second;
    when_.erase(calling_);
    due_.erase(first);
    lock.Unlock();
    fn();
    lock.Lock();
    calling_ = 0;
    changed_.NotifyAll();
  }
}

}  // namespace heddle
