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
      : deques_(static_cast<size_t>(priority.empty() ? participants : 1)),
        shuffled_(shuffle_seed != 0),
        priority_(priority) {
    for (size_t l = 0; l < deques_.size(); ++l) deques_[l].random.seed(shuffle_seed + l);
  }
  bool has_priorities() const { return !priority_.empty(); }

  void Push(int participant, uint32_t task) {
    if (has_priorities()) return PushAll({&task, 1});
    // There is a deque for each participant; without the bound, GCC warns that there may be none.
    Deque& deque = deques_[std::min(static_cast<size_t>(participant), deques_.size() - 1)];
    MutexLock lock(deque.mutex);
    deque.tasks.push_back(task);
  }
  // With priorities, pushes all under one lock, so that none is popped before all are there.
  void PushAll(std::span<const uint32_t> tasks) {
    Deque& deque = deques_[0];
    MutexLock lock(deque.mutex);
    for (const uint32_t task : tasks) {
      deque.heap.push_back({priority_[task], shuffled_ ? deque.random() : task, task});
      std::push_heap(deque.heap.begin(), deque.heap.end(), std::greater<>());
    }
  }
  // False when no deque had a task at the moment it was looked at.
  bool Pop(int participant, uint32_t* task) {
    if (has_priorities()) return PopByPriority(task);
    const int n = static_cast<int>(deques_.size());
    for (int k = 0; k < n; ++k) {
      Deque& deque = deques_[(participant + k) % n];
      MutexLock lock(deque.mutex);
      if (deque.tasks.empty()) continue;
      if (shuffled_)
        std::swap(deque.tasks[deque.random() % deque.tasks.size()],
                  deque.tasks[k == 0 ? deque.tasks.size() - 1 : 0]);
      *task = k == 0 ? deque.tasks.PopNewest() : deque.tasks.PopOldest();
      return true;
    }
    return false;
  }
  void Clear() {
    for (Deque& deque : deques_) {
      MutexLock lock(deque.mutex);
      deque.tasks.clear();
      deque.heap.clear();
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
    Deque& deque = deques_[0];
    MutexLock lock(deque.mutex);
    if (deque.heap.empty()) return false;
    std::pop_heap(deque.heap.begin(), deque.heap.end(), std::greater<>());
    *task = deque.heap.back().task;
    deque.heap.pop_back();
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

  struct alignas(64) Deque {
    Mutex mutex;
    Ring tasks HEDDLE_GUARDED_BY(mutex);
    std::vector<Entry> heap HEDDLE_GUARDED_BY(mutex);  // least first
    std::minstd_rand random HEDDLE_GUARDED_BY(mutex);
  };
  std::vector<Deque> deques_;
  const bool shuffled_;
  const std::span<const int64_t> priority_;
};

}  // namespace heddle
