// Reading a graph takes some things for granted that only later nodes can contradict: that a loop
// hands a value on with the rank that it began with, that a list holds items of one shape. Where
// one of them turns out not to hold, the graph is read again, and the reader knows better.
#pragma once

#include <cstddef>
#include <set>
#include <utility>

namespace heddle::tensorflow {

struct Node;

// Assumptions about values that a reading of the graph has found not to hold; later readings do
// without them. Threads: one at a time.
class Revisions {
 public:
  // Whether value `k` that the node carries, or makes, may have any shape. After some readings all
  // may: loops in each other can contradict one another many times.
  bool IsOpen(const Node& node, size_t k) const {
    return readings_ >= kMostReadings || open_.contains({&node, k});
  }
  // Says so for the next reading, which is needed where it was not known.
  void Open(const Node& node, size_t k) { needed_ |= open_.insert({&node, k}).second; }
  // Whether the graph has to be read again since the last call.
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
