// Lifetimes: when the memory of each slot is in use, for instructions that run one after another,
// or in lanes, where only the lanes' waits guarantee an order.
//
// The live range of a slot that only one lane touches is a range of that lane's own order; such
// slots share memory with each other, in one region per lane. The live range of a slot that several
// lanes touch lasts, in the order of the walk, until every lane knows that the slot's last user has
// finished; all such slots share one region.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/lane_schedule.h"

namespace heddle {

class Lifetimes {
 public:
  // `lanes`: nullptr for one after another. An instruction is given by its position in the plan,
  // which with lanes is that in LaneSchedule::order. Touch must be called in the order of the walk.
  Lifetimes(size_t slots, const LaneSchedule* lanes);

  void Touch(uint32_t slot, uint32_t instruction);
  bool touched(uint32_t slot) const { return first_[slot] != kNever; }
  // Whether the instruction touches the slot, and all other users of the slot have finished before
  // it starts.
  bool IsLastUser(uint32_t slot, uint32_t instruction) const;
  // Places `from` in the memory of `into`: its users become users of `into`. `from` may be touched
  // before `into`, and by several lanes at the same time.
  void Merge(uint32_t into, uint32_t from);
  // Whether more than one lane touches the slot.
  bool crosses(uint32_t slot) const;

  // Ranges of different regions never share memory.
  struct Range {
    int region;
    int32_t first, last;
  };
  Range RangeOf(uint32_t slot) const;
  // Whether all users of `a` have certainly finished before any user of `b` starts.
  bool Before(uint32_t a, uint32_t b) const;
  // From the first to the last user in the order of the walk; region 0.
  Range WalkRange(uint32_t slot) const;
  int regions() const { return lanes_ == nullptr ? 1 : static_cast<int>(count_) + 1; }

 private:
  static constexpr uint32_t kNever = ~0u;
  uint32_t LaneOf(uint32_t position) const;
  // The number of nodes of lane `other` that are finished when `lane` starts its n-th node.
  uint32_t Known(uint32_t lane, uint32_t n, uint32_t other) const;
  // The first node of `lane` at which all users of the slot are known to have finished.
  uint32_t FirstAfter(uint32_t slot, uint32_t lane) const;
  uint32_t* Ends(uint32_t slot) { return &ends_[size_t{slot} * count_]; }
  const uint32_t* Ends(uint32_t slot) const { return &ends_[size_t{slot} * count_]; }
  // Whether all users of `slot` are known to have finished when the instruction at `position`
  // starts.
  bool FinishedAt(uint32_t slot, uint32_t position) const;
  uint32_t WalkIndex(uint32_t position) const {
    return lanes_ == nullptr ? position : walk_index_[position];
  }

  const LaneSchedule* lanes_;
  const uint32_t count_;
  // Per slot: the position of the first user in the order of the walk, and of the first user in
  // each lane. The latter need not wait for the former if slots were merged.
  std::vector<uint32_t> first_;
  std::vector<uint32_t> starts_;  // per slot and lane; kNever: none
  std::vector<bool> merged_;      // per slot: others were merged into it
  // Per slot and lane: the number of the lane's nodes up to and including the slot's last user.
  std::vector<uint32_t> ends_;
  std::vector<uint32_t> walk_index_;  // per position
};

}  // namespace heddle
