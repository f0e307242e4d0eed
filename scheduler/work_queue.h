// Ready tasks of one run: a deque per participant, the owner takes the newest, others steal the
// oldest. With a seed, a mode for tests, either takes any one: orders that rarely come about do.
// Tasks with priorities are in one heap for all participants instead, and whoever pops takes a task
// of the least priority, the lowest of them (with a seed, any of them).
//
// Threads: Push/Pop may be called by any participant at the same time; each participant index is
// used by one thread at a time. Memory ordering: everything before a Push happens before the Pop
// that returns the pushed task (the deque's mutex orders them).
#pragma once

#include <compare>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <queue>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "core/thread_annotations.h"

namespace heddle {

class WorkQueue {
 public:
  // `shuffle_seed` 0: do not shuffle. `priority`: per task, must outlive the queue; empty: none.
  explicit WorkQueue(int participants, uint64_t shuffle_seed = 0,
                     std::span<const int64_t> priority = {})
      : lanes_(static_cast<size_t>(priority.empty() ? participants : 1)),
        shuffled_(shuffle_seed != 0),
        priority_(priority) {
    for (size_t l = 0; l < lanes_.size(); ++l) lanes_[l].random.seed(shuffle_seed + l);
  }
  bool has_priorities() const { return !priority_.empty(); }

  void Push(int participant, uint32_t task) {
    if (has_priorities()) return PushAll({&task, 1});
    Lane& lane = lanes_[participant];
    MutexLock lock(lane.mutex);
    lane.tasks.push_back(task);
  }
  // With priorities: several at once, so that nobody pops one before all are there.
  void PushAll(std::span<const uint32_t> tasks) {
    Lane& lane = lanes_[0];
    MutexLock lock(lane.mutex);
    for (const uint32_t task : tasks)
      lane.heap.push({priority_[task], shuffled_ ? lane.random() : task, task});
  }
  // False when no lane had a task at the moment it was looked at.
  bool Pop(int participant, uint32_t* task) {
    if (has_priorities()) return PopByPriority(task);
    const int n = static_cast<int>(lanes_.size());
    for (int k = 0; k < n; ++k) {
      Lane& lane = lanes_[(participant + k) % n];
      MutexLock lock(lane.mutex);
      if (lane.tasks.empty()) continue;
      if (shuffled_)
        std::swap(lane.tasks[lane.random() % lane.tasks.size()],
                  k == 0 ? lane.tasks.back() : lane.tasks.front());
      if (k == 0) {
        *task = lane.tasks.back();
        lane.tasks.pop_back();
      } else {
        *task = lane.tasks.front();
        lane.tasks.pop_front();
      }
      return true;
    }
    return false;
  }
  void Clear() {
    for (Lane& lane : lanes_) {
      MutexLock lock(lane.mutex);
      lane.tasks.clear();
      lane.heap = {};
    }
  }

 private:
  struct Entry {
    int64_t priority;
    uint64_t tie;
    uint32_t task;
    auto operator<=>(const Entry&) const = default;
  };
  bool PopByPriority(uint32_t* task) {
    Lane& lane = lanes_[0];
    MutexLock lock(lane.mutex);
    if (lane.heap.empty()) return false;
    *task = lane.heap.top().task;
    lane.heap.pop();
    return true;
  }

  struct alignas(64) Lane {
    Mutex mutex;
    std::deque<uint32_t> tasks HEDDLE_GUARDED_BY(mutex);
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> heap HEDDLE_GUARDED_BY(mutex);
    std::minstd_rand random HEDDLE_GUARDED_BY(mutex);
  };
  std::vector<Lane> lanes_;
  const bool shuffled_;
  const std::span<const int64_t> priority_;
};

}  // namespace heddle
