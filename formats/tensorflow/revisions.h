// Reading a graph relies on assumptions that only later nodes can contradict: that a carried value
// keeps its initial rank, that a list's items have one shape. If one does not hold, the graph is
// read again without it.
#pragma once

#include <cstddef>
#include <set>
#include <utility>

namespace heddle::tensorflow {

struct Node;

// The assumptions about values that have been found not to hold. Threads: one at a time.
class Revisions {
 public:
  // Whether value `k` that the node carries, or makes, may have any shape. After kMostReadings
  // readings all may: nested loops can contradict each other many times.
  bool IsOpen(const Node& node, size_t k) const {
    return readings_ >= kMostReadings || open_.contains({&node, k});
  }
  // Notes that value `k` may have any shape. If that is new, another reading is needed.
  void Open(const Node& node, size_t k) { needed_ |= open_.insert({&node, k}).second; }
  // Ends a reading: whether another one is needed.
  bool TakeNeeded() {
    ++readings_;
    return std::exchange(needed_, false);
  }

 private:
  static constexpr int kMostReadings = 8;

  std::set<std::pair<const Node*, size_t>> open_;
  bool needed_ = false;
  int readings_ = 0;
};

}  // namespace heddle::tensorflow
