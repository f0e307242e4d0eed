// Plans for the shapes that runs bring: a few of them, so that a program whose shapes always change
// neither fills the memory nor compiles in every run.
//
// Ownership: of the plans. Threads: one at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace heddle_openvino {

// Rank and dimensions of each input, one after another.
using Shapes = std::vector<int64_t>;

template <typename Plan>
class ShapeTable {
 public:
  static constexpr size_t kMost = 8;

  // The plan for these shapes, which is the last one to go from now on; null: there is none.
  Plan* Find(const Shapes& shapes) {
    const auto at = std::find_if(plans_.begin(), plans_.end(),
                                 [&](const auto& entry) { return entry.first == shapes; });
    if (at == plans_.end()) return nullptr;
    std::rotate(plans_.begin(), at, at + 1);
    return &plans_.front().second;
  }

  // Whether shapes without a plan are worth one, which may take another one's place: those that
  // come again soon are. To be asked once for each run that brings them.
  bool IsWorthOne(const Shapes& shapes) {
    if (plans_.size() < kMost) return true;
    const auto at = std::find(seen_.begin(), seen_.end(), shapes);
    const bool again = at != seen_.end();
    if (again)
      seen_.erase(at);
    else
      seen_.insert(seen_.begin(), shapes);
    if (seen_.size() > kMost) seen_.pop_back();
    return again;
  }

  // In the place of what was not used for longest, where there are as many as there may be.
  Plan* Add(Shapes shapes, Plan plan) {
    if (plans_.size() == kMost) plans_.pop_back();
    plans_.emplace(plans_.begin(), std::move(shapes), std::move(plan));
    return &plans_.front().second;
  }

  // Most recently used ones first.
  const std::vector<std::pair<Shapes, Plan>>& plans() const { return plans_; }

 private:
  std::vector<std::pair<Shapes, Plan>> plans_;
  std::vector<Shapes> seen_;  // that have no plan, most recent ones first
};

}  // namespace heddle_openvino
