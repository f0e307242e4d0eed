// Lists of idle objects, each used by one call at a time, which are found again on the processor
// that used them last, since their data is still in its cache. With callers on several processors,
// moving an object from one to another costs more than many a small operator.
#pragma once

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace heddle {

// The processor on which the calling thread is at the moment.
inline int ThisProcessor() { return std::max(0, ::sched_getcpu()); }

// One more than the highest number of a processor that the calling thread may use, at least 1 and
// at most `most`. One system call, while std::thread::hardware_concurrency opens and reads a file.
inline unsigned CountProcessors(unsigned most) {
  cpu_set_t set;
  CPU_ZERO(&set);
  // The machine has more than 1,024 processors.
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) return most;
  unsigned count = 1;
  for (unsigned at = 0; at < CPU_SETSIZE; ++at)
    if (CPU_ISSET(at, &set)) count = at + 1;
  return std::min(count, most);
}

// NearList: any number of objects. Threads: synchronized by the owner.
template <typename T>
class NearList {
 public:
  bool empty() const { return things_.empty(); }
  void clear() { things_.clear(); }

  // Takes the newest of the last few objects that `processor` put back; else the newest one.
  // Precondition: the list is not empty.
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

// NearSpares: a few objects, at most one per processor, without a lock. Threads: all methods may be
// called from any thread; what was done to an object before Put is visible after Take.
template <typename T>
class NearSpares {
 public:
  NearSpares() : count_(Count()), places_(std::make_unique<Place[]>(count_)) {}
  ~NearSpares() {
    for (size_t i = 0; i < count_; ++i) delete places_[i].thing.load(std::memory_order_acquire);
  }
  NearSpares(const NearSpares&) = delete;
  NearSpares& operator=(const NearSpares&) = delete;

  // Takes this processor's object, else another's; nullptr: there is none. So a single caller has
  // only one object, on whatever processor it runs.
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
  // Puts an object back; one for which there is no place is destroyed.
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
