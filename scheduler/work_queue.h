// Ready tasks of one run: a deque per participant; the owner takes its newest task, others steal
// the oldest. With a seed, a mode for tests, either takes any task, so that rare orders come about.
// Tasks with priorities are in one heap for all participants instead, and a pop takes a task of the
// least priority, among equals the lowest (with a seed, any of them). A queue keeps its memory from
// run to run.
//
// Threads: Push/Pop may be called by any participant at the same time; each participant index is
// used by one thread at a time. Memory ordering: everything before a Push happens before the Pop
// that returns the pushed task (the deque's mutex orders them).
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "core/thread_annotations.h"

namespace heddle {

class WorkQueue {
 public:
  // `shuffle_seed` 0: no shuffling. `priority`: per task, must outlive the queue; empty: none.
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
    // There is a deque for each participant; without the bound, GCC warns that there may be none.
    Lane& lane = lanes_[std::min(static_cast<size_t>(participant), lanes_.size() - 1)];
    MutexLock lock(lane.mutex);
    lane.tasks.push_back(task);
  }
  // With priorities, pushes all under one lock, so that none is popped before all are there.
  void PushAll(std::span<const uint32_t> tasks) {
    Lane& lane = lanes_[0];
    MutexLock lock(lane.mutex);
    for (const uint32_t task : tasks) {
      lane.heap.push_back({priority_[task], shuffled_ ? lane.random() : task, task});
      std::push_heap(lane.heap.begin(), lane.heap.end(), std::greater<>());
    }
  }
  // False when no deque had a task at the moment it was looked at.
  bool Pop(int participant, uint32_t* task) {
    if (has_priorities()) return PopByPriority(task);
    const int n = static_cast<int>(lanes_.size());
    for (int k = 0; k < n; ++k) {
      Lane& lane = lanes_[(participant + k) % n];
      MutexLock lock(lane.mutex);
      if (lane.tasks.empty()) continue;
      if (shuffled_)
        std::swap(lane.tasks[lane.random() % lane.tasks.size()],
                  lane.tasks[k == 0 ? lane.tasks.size() - 1 : 0]);
      *task = k == 0 ? lane.tasks.PopNewest() : lane.tasks.PopOldest();
      return true;
    }
    return false;
  }
  void Clear() {
    for (Lane& lane : lanes_) {
      MutexLock lock(lane.mutex);
      lane.tasks.clear();
      lane.heap.clear();
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
    std::pop_heap(lane.heap.begin(), lane.heap.end(), std::greater<>());
    *task = lane.heap.back().task;
    lane.heap.pop_back();
    return true;
  }
  // A ring buffer that keeps its memory: in every run tasks come and go at both ends.
  class Ring {
   public:
    bool empty() const { return size_ == 0; }
    size_t size() const { return size_; }
    uint32_t& operator[](size_t i) { return room_[(begin_ + i) & (room_.size() - 1)]; }
    void push_back(uint32_t task) {
      if (size_ == room_.size()) Grow();
      ++size_;
      (*this)[size_ - 1] = task;
    }
    uint32_t PopNewest() { return (*this)[--size_]; }
    uint32_t PopOldest() {
      --size_;
      return room_[begin_++ & (room_.size() - 1)];
    }
    void clear() { size_ = 0; }

   private:
    void Grow() {
      std::vector<uint32_t> room(std::max<size_t>(64, 2 * room_.size()));  // a power of two
      for (size_t i = 0; i < size_; ++i) room[i] = (*this)[i];
      room_ = std::move(room);
      begin_ = 0;
    }
    std::vector<uint32_t> room_;
    size_t begin_ = 0, size_ = 0;
  };

  struct alignas(64) Lane {
    Mutex mutex;
    Ring tasks HEDDLE_GUARDED_BY(mutex);
    std::vector<Entry> heap HEDDLE_GUARDED_BY(mutex);  // least first
    std::minstd_rand random HEDDLE_GUARDED_BY(mutex);
  };
  std::vector<Lane> lanes_;
  const bool shuffled_;
  const std::span<const int64_t> priority_;
};

}  // namespace heddle
