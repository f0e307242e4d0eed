// When the memory of slots is in use, in the order a plan's instructions run: one after another, or
// in lanes, where only what the lanes' waits guarantee is known.
//
// A slot that only one lane touches lives by that lane's own order and shares memory with others of
// its kind (a region per lane). One that several lanes touch lives, in the order of the walk, until
// every lane knows that its last user has finished (a region for all of those).
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/lane_schedule.h"

namespace heddle {

class Lifetimes {
 public:
  // `lanes`: nullptr for one after another. Instructions are known by their position in the plan,
  // in lanes: LaneSchedule::order. Touches come in the order of the walk.
  Lifetimes(size_t slots, const LaneSchedule* lanes);

  void Touch(uint32_t slot, uint32_t instruction);
  bool touched(uint32_t slot) const { return first_[slot] != kNever; }
  // The instruction touches the slot, and everybody else who does has finished before it starts.
  bool IsLastUser(uint32_t slot, uint32_t instruction) const;
  // Whoever touches `from` also touches `into`'s memory; `from` may be touched before `into` is,
  // and in several lanes at once.
  void Merge(uint32_t into, uint32_t from);
  // More than one lane touches it.
  bool crosses(uint32_t slot) const;

  // Ranges of different regions never share memory.
  struct Range {
    int region;
    int32_t first, last;
  };
  Range RangeOf(uint32_t slot) const;
  // Everybody who touches `a` has surely finished before anybody touches `b`.
  bool Before(uint32_t a, uint32_t b) const;
  // From the first to the last toucher in the order of the walk; region 0.
  Range WalkRange(uint32_t slot) const;
  int regions() const { return lanes_ == nullptr ? 1 : static_cast<int>(count_) + 1; }

 private:
  static constexpr uint32_t kNever = ~0u;
  uint32_t LaneOf(uint32_t position) const;
  // The number of nodes of `other` that are finished when `lane` starts its n-th node.
  uint32_t Known(uint32_t lane, uint32_t n, uint32_t other) const;
  // The first node of `lane` by which everything that touched the slot is known to be finished.
  uint32_t FirstAfter(uint32_t slot, uint32_t lane) const;
  uint32_t* Ends(uint32_t slot) { return &ends_[size_t{slot} * count_]; }
  const uint32_t* Ends(uint32_t slot) const { return &ends_[size_t{slot} * count_]; }
  // The lanes' progress that the instruction at `position` may count on covers all of `slot`'s
  // ends.
  bool FinishedAt(uint32_t slot, uint32_t position) const;
  uint32_t WalkIndex(uint32_t position) const {
    return lanes_ == nullptr ? position : walk_index_[position];
  }

  const LaneSchedule* lanes_;
  const uint32_t count_;
  // Position of the first toucher in the order of the walk, and of the first one in each lane,
  // which need not wait for that one where slots were merged.
  std::vector<uint32_t> first_;
  std::vector<uint32_t> starts_;  // per slot and lane; kNever: none
  std::vector<bool> merged_;      // per slot
  // Per slot and lane: the lane's nodes up to and including the last that touches the slot.
  std::vector<uint32_t> ends_;
  std::vector<uint32_t> walk_index_;  // per position
};

}  // namespace heddle
