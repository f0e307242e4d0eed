// Things that one call at a time uses and that wait to be used again, found by the processor that
// used them last: what they hold is still in its cache. With callers on several processors, a thing
// that goes from one to another costs more than many a small operator.
#pragma once

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace heddle {

// The processor that the calling thread is on. It may be on another one right after.
inline int ThisProcessor() { return std::max(0, ::sched_getcpu()); }

// One more than the highest number of a processor that the calling thread may use, at most `most`;
// at least 1. One call of the system: std::thread::hardware_concurrency opens and reads a file.
inline unsigned CountProcessors(unsigned most) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) return most;  // the machine has over 1,024
  unsigned count = 1;
  for (unsigned at = 0; at < CPU_SETSIZE; ++at)
    if (CPU_ISSET(at, &set)) count = at + 1;
  return std::min(count, most);
}

// Any number of things. Threads: guarded by the owner.
template <typename T>
class NearList {
 public:
  bool empty() const { return things_.empty(); }
  void clear() { things_.clear(); }

  // The newest of the last few that `processor` put back; else the newest. Precondition: the list
  // is not empty.
  T Take(int processor = ThisProcessor()) {
    constexpr size_t kLooks = 64;
    size_t found = things_.size() - 1;
    for (size_t k = 0; k < std::min(kLooks, things_.size()); ++k) {
      const size_t at = things_.size() - 1 - k;
      if (things_[at].processor != processor) continue;
      found = at;
      break;
    }
    T thing = std::move(things_[found].thing);
    things_.erase(things_.begin() + static_cast<std::ptrdiff_t>(found));
    return thing;
  }
  void Put(T thing, int processor = ThisProcessor()) {
    things_.push_back({std::move(thing), processor});
  }

 private:
  struct Entry {
    T thing;
    int processor;
  };
  std::vector<Entry> things_;
};

// A few things, at most one a processor, without a lock. Threads: all methods may be called from
// any thread; what was done to a thing before it was put back is visible to who takes it.
template <typename T>
class NearSpares {
 public:
  NearSpares() : count_(Count()), places_(std::make_unique<Place[]>(count_)) {}
  ~NearSpares() {
    for (size_t i = 0; i < count_; ++i) delete places_[i].thing.load(std::memory_order_acquire);
  }
  NearSpares(const NearSpares&) = delete;
  NearSpares& operator=(const NearSpares&) = delete;

  // This processor's, else another's; nullptr when there is none. So a single caller has but one,
  // wherever it goes.
  std::unique_ptr<T> Take(int processor = ThisProcessor()) {
    const size_t home = static_cast<size_t>(processor) % count_;
    for (size_t i = 0; i < count_; ++i) {
      std::atomic<T*>& place = places_[(home + i) % count_].thing;
      if (place.load(std::memory_order_relaxed) == nullptr) continue;
      if (T* thing = place.exchange(nullptr, std::memory_order_acquire))
        return std::unique_ptr<T>(thing);
    }
    return nullptr;
  }
  // A thing for which there is no place is destroyed.
  void Put(std::unique_ptr<T> thing, int processor = ThisProcessor()) {
    const size_t home = static_cast<size_t>(processor) % count_;
    for (size_t i = 0; i < count_; ++i) {
      T* none = nullptr;
      if (places_[(home + i) % count_].thing.compare_exchange_strong(
              none, thing.get(), std::memory_order_release, std::memory_order_relaxed)) {
        thing.release();
        return;
      }
    }
  }

 private:
  struct alignas(64) Place {
    std::atomic<T*> thing{nullptr};
  };
  static size_t Count() {
    constexpr unsigned kMost = 16;
    return CountProcessors(kMost);
  }

  const size_t count_;
  const std::unique_ptr<Place[]> places_;
};

}  // namespace heddle
