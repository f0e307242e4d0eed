#include "executor/plan/lifetimes.h"

#include <algorithm>

namespace heddle {

Lifetimes::Lifetimes(size_t slots, const LaneSchedule* lanes)
    : lanes_(lanes),
      count_(lanes == nullptr ? 1 : static_cast<uint32_t>(lanes->lanes)),
      first_(slots, kNever),
      merged_(slots, false),
      ends_(slots * count_, 0) {
  if (lanes == nullptr) return;
  starts_.assign(slots * count_, kNever);
  std::vector<uint32_t> position(lanes->order.size());
  for (uint32_t p = 0; p < position.size(); ++p) position[lanes->order[p]] = p;
  walk_index_.resize(position.size());
  for (uint32_t k = 0; k < position.size(); ++k) walk_index_[position[lanes->walk[k]]] = k;
}

uint32_t Lifetimes::LaneOf(uint32_t position) const {
  if (lanes_ == nullptr) return 0;
  const auto& begin = lanes_->lane_begin;
  return static_cast<uint32_t>(std::upper_bound(begin.begin(), begin.end(), position) -
                               begin.begin() - 1);
}

uint32_t Lifetimes::Known(uint32_t lane, uint32_t n, uint32_t other) const {
  const LaneSchedule& s = *lanes_;
  const auto begin = s.clock_positions.begin() + s.clock_begin[lane];
  const auto end = s.clock_positions.begin() + s.clock_begin[lane + 1];
  const auto after = std::upper_bound(begin, end, s.lane_begin[lane] + n);
  if (after == begin) return 0;
  const size_t row = static_cast<size_t>(after - s.clock_positions.begin()) - 1;
  return s.clocks[row * count_ + other];
}

void Lifetimes::Touch(uint32_t slot, uint32_t instruction) {
  if (first_[slot] == kNever) first_[slot] = instruction;
  const uint32_t lane = LaneOf(instruction);
  const uint32_t n = instruction - (lanes_ == nullptr ? 0 : lanes_->lane_begin[lane]);
  Ends(slot)[lane] = std::max(Ends(slot)[lane], n + 1);
  if (lanes_ == nullptr) return;
  uint32_t& start = starts_[size_t{slot} * count_ + lane];
  start = std::min(start, instruction);
}

bool Lifetimes::IsLastUser(uint32_t slot, uint32_t instruction) const {
  const uint32_t lane = LaneOf(instruction);
  const uint32_t n = instruction - (lanes_ == nullptr ? 0 : lanes_->lane_begin[lane]);
  for (uint32_t l = 0; l < count_; ++l)
    if (l == lane ? Ends(slot)[l] != n + 1 : Ends(slot)[l] > Known(lane, n, l)) return false;
  return true;
}

void Lifetimes::Merge(uint32_t into, uint32_t from) {
  if (WalkIndex(first_[from]) < WalkIndex(first_[into])) first_[into] = first_[from];
  for (uint32_t l = 0; l < count_; ++l) {
    Ends(into)[l] = std::max(Ends(into)[l], Ends(from)[l]);
    if (lanes_ == nullptr) continue;
    uint32_t& start = starts_[size_t{into} * count_ + l];
    start = std::min(start, starts_[size_t{from} * count_ + l]);
  }
  merged_[into] = true;
}

bool Lifetimes::crosses(uint32_t slot) const {
  return std::count(Ends(slot), Ends(slot) + count_, 0u) < static_cast<int>(count_) - 1;
}

uint32_t Lifetimes::FirstAfter(uint32_t slot, uint32_t lane) const {
  const LaneSchedule& s = *lanes_;
  const uint32_t size = s.lane_begin[lane + 1] - s.lane_begin[lane];
  uint32_t n = Ends(slot)[lane];
  uint32_t row = s.clock_begin[lane];
  const uint32_t rows_end = s.clock_begin[lane + 1];
  for (uint32_t l = 0; l < count_; ++l) {
    if (l == lane || Ends(slot)[l] == 0) continue;
    // Clocks only grow along a lane: binary search for the first row that covers the slot's end in
    // lane l.
    uint32_t low = row, high = rows_end;
    while (low < high) {
      const uint32_t middle = low + (high - low) / 2;
      if (s.clocks[size_t{middle} * count_ + l] >= Ends(slot)[l])
        high = middle;
      else
        low = middle + 1;
    }
    if (low == rows_end) return size;
    row = low;
    n = std::max(n, s.clock_positions[low] - s.lane_begin[lane]);
  }
  return n;
}

Lifetimes::Range Lifetimes::RangeOf(uint32_t slot) const {
  const uint32_t lane = LaneOf(first_[slot]);
  if (lanes_ == nullptr)
    return {0, static_cast<int32_t>(first_[slot]), static_cast<int32_t>(Ends(slot)[0] - 1)};
  const uint32_t begin = lanes_->lane_begin[lane];
  if (!crosses(slot))
    return {static_cast<int>(lane), static_cast<int32_t>(first_[slot] - begin),
            static_cast<int32_t>(Ends(slot)[lane] - 1)};
  uint32_t last = walk_index_[first_[slot]];
  for (uint32_t l = 0; l < count_; ++l)
    if (const uint32_t n = FirstAfter(slot, l); n > 0)
      last = std::max(last, walk_index_[lanes_->lane_begin[l] + n - 1]);
  return {static_cast<int>(count_), static_cast<int32_t>(walk_index_[first_[slot]]),
          static_cast<int32_t>(last)};
}

bool Lifetimes::FinishedAt(uint32_t slot, uint32_t position) const {
  const uint32_t lane = LaneOf(position);
  const uint32_t n = position - lanes_->lane_begin[lane];
  for (uint32_t l = 0; l < count_; ++l)
    if (Ends(slot)[l] > (l == lane ? n : Known(lane, n, l))) return false;
  return true;
}

bool Lifetimes::Before(uint32_t a, uint32_t b) const {
  if (lanes_ == nullptr) return Ends(a)[0] <= first_[b];
  if (!FinishedAt(a, first_[b])) return false;
  // All other users of b wait for its first user, unless slots were merged into b.
  for (uint32_t l = 0; merged_[b] && l < count_; ++l)
    if (const uint32_t start = starts_[size_t{b} * count_ + l];
        start != kNever && !FinishedAt(a, start))
      return false;
  return true;
}

Lifetimes::Range Lifetimes::WalkRange(uint32_t slot) const {
  if (lanes_ == nullptr) return RangeOf(slot);
  uint32_t last = walk_index_[first_[slot]];
  for (uint32_t l = 0; l < count_; ++l)
    if (const uint32_t n = Ends(slot)[l]; n > 0)
      last = std::max(last, walk_index_[lanes_->lane_begin[l] + n - 1]);
  return {0, static_cast<int32_t>(walk_index_[first_[slot]]), static_cast<int32_t>(last)};
}

}  // namespace heddle
