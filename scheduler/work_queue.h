// Ready tasks of one run: a deque per participant, the owner takes the newest, others steal the
// oldest. With a seed, a mode for tests, either takes any one: orders that rarely come about do.
//
// Threads: Push/Pop may be called by any participant at the same time; each participant index is
// used by one thread at a time. Memory ordering: everything before a Push happens before the Pop
// that returns the pushed task (the deque's mutex orders them).
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "core/thread_annotations.h"

namespace heddle {

class WorkQueue {
 public:
  // `shuffle_seed` 0: do not shuffle.
  explicit WorkQueue(int participants, uint64_t shuffle_seed = 0)
      : lanes_(static_cast<size_t>(participants)), shuffled_(shuffle_seed != 0) {
    for (size_t l = 0; l < lanes_.size(); ++l) lanes_[l].random.seed(shuffle_seed + l);
  }
  int participants() const { return static_cast<int>(lanes_.size()); }

  void Push(int participant, uint32_t task) {
    Lane& lane = lanes_[participant];
    MutexLock lock(lane.mutex);
    lane.tasks.push_back(task);
  }
  // False when no lane had a task at the moment it was looked at.
  bool Pop(int participant, uint32_t* task) {
    const int n = participants();
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
    }
  }

 private:
  struct alignas(64) Lane {
    Mutex mutex;
    std::deque<uint32_t> tasks HEDDLE_GUARDED_BY(mutex);
    std::minstd_rand random HEDDLE_GUARDED_BY(mutex);
  };
  std::vector<Lane> lanes_;
  const bool shuffled_;
};

}  // namespace heddle
