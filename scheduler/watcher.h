// Watcher: one thread that calls functions at given times (deadlines, looks at stalled runs).
//
// Threads: all methods may be called from any thread, At also from a function being called. The
// thread is started by the first At.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <thread>
#include <utility>

#include "core/thread_annotations.h"
#include "core/threads/at_fork.h"

namespace heddle {

class Watcher {
 public:
  using Time = std::chrono::steady_clock::time_point;
  Watcher() = default;
  ~Watcher();
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  // Calls fn at `when`, or soon after, on the watcher's thread. fn must be quick and not throw.
  uint64_t At(Time when, std::function<void()> fn);
  // Removes the function; if it is being called, waits for its end. Must not be called by that
  // function.
  void Remove(uint64_t id);

 private:
  void Work();
  void ForgetThreads();
  Mutex mutex_;
  CondVar changed_;
  std::map<std::pair<Time, uint64_t>, std::function<void()>> due_ HEDDLE_GUARDED_BY(mutex_);
  std::map<uint64_t, Time> when_ HEDDLE_GUARDED_BY(mutex_);
  uint64_t next_id_ HEDDLE_GUARDED_BY(mutex_) = 1;
  uint64_t calling_ HEDDLE_GUARDED_BY(mutex_) = 0;
  bool stop_ HEDDLE_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // started with mutex_ held, joined by the destructor
  const AtFork at_fork_{mutex_, [this] { ForgetThreads(); }};
};

}  // namespace heddle
