#include "scheduler/watcher.h"

namespace heddle {

Watcher::~Watcher() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

uint64_t Watcher::At(Time when, std::function<void()> fn) {
  std::lock_guard lock(mutex_);
  const uint64_t id = next_id_++;
  const auto at = due_.emplace(std::make_pair(when, id), std::move(fn)).first;
  when_.emplace(id, when);
  if (!thread_.joinable())
    thread_ = std::thread([this] { Work(); });
  else if (at == due_.begin())
    changed_.notify_all();
  return id;
}

void Watcher::Remove(uint64_t id) {
  std::unique_lock lock(mutex_);
  if (const auto at = when_.find(id); at != when_.end()) {
    due_.erase({at->second, id});
    when_.erase(at);
  }
  changed_.wait(lock, [&] { return calling_ != id; });
}

void Watcher::Work() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    if (due_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const auto first = due_.begin();
    if (std::chrono::steady_clock::now() < first->first.first) {
      const Time until = first->first.first;
      changed_.wait_until(lock, until);
      continue;
    }
    auto fn = std::move(first->second);
    calling_ = first->first.second;
    when_.erase(calling_);
    due_.erase(first);
    lock.unlock();
    fn();
    lock.lock();
    calling_ = 0;
    changed_.notify_all();
  }
}

}  // namespace heddle
