// Look-ups of slots whose cost follows the block or the instruction, not the whole plan.
//
// Threads: one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "executor/plan/plan.h"

namespace heddle {

// Numbers for the slots that one block has to do with. Ownership: owns its tables.
class BlockSlots {
 public:
  explicit BlockSlots(size_t slots) : number_(slots, kNoSlot) {}

  // Forgets the block before.
  void Clear() {
    for (uint32_t s : slots_) number_[s] = kNoSlot;
    slots_.clear();
  }
  void Add(uint32_t slot) {
    if (slot == kNoSlot) return;
    if (slot >= number_.size()) number_.resize(slot + 1, kNoSlot);
    if (number_[slot] != kNoSlot) return;
    number_[slot] = static_cast<uint32_t>(slots_.size());
    slots_.push_back(slot);
  }
  bool Has(uint32_t slot) const { return slot < number_.size() && number_[slot] != kNoSlot; }
  // Precondition: it was added.
  uint32_t operator[](uint32_t slot) const { return number_[slot]; }
  const std::vector<uint32_t>& all() const { return slots_; }  // by number

 private:
  std::vector<uint32_t> number_, slots_;
};

// Where values stand in a list of operands. Most lists have few: those are searched. A long list
// gets an index when it is first asked. Ownership: refers to the list, which must not change.
class OperandIndex {
 public:
  explicit OperandIndex(std::span<const uint32_t> list) : list_(list) {}

  // The first position of the value; that of the list's end where it is not in it.
  uint32_t Find(uint32_t value) {
    if (list_.size() <= kFew)
      return static_cast<uint32_t>(std::find(list_.begin(), list_.end(), value) - list_.begin());
    const auto at = Index().find(value);
    return at == places_.end() ? static_cast<uint32_t>(list_.size()) : at->second.first;
  }
  // How often it is there.
  uint32_t Count(uint32_t value) {
    if (list_.size() <= kFew)
      return static_cast<uint32_t>(std::count(list_.begin(), list_.end(), value));
    const auto at = Index().find(value);
    return at == places_.end() ? 0 : at->second.count;
  }

 private:
  static constexpr size_t kFew = 32;
  struct Places {
    uint32_t first, count;
  };
  const std::unordered_map<uint32_t, Places>& Index() {
    if (!places_.empty()) return places_;
    places_.reserve(list_.size());
    for (uint32_t i = 0; i < list_.size(); ++i)
      ++places_.try_emplace(list_[i], Places{i, 0}).first->second.count;
    return places_;
  }

  const std::span<const uint32_t> list_;
  std::unordered_map<uint32_t, Places> places_;
};

}  // namespace heddle
