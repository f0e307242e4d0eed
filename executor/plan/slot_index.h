// Look-up tables for slots whose cost depends on the block or the instruction, not on the whole
// plan.
//
// Threads: one at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "executor/plan/plan.h"

namespace heddle {

// BlockSlots: consecutive numbers for the slots that one block touches. Ownership: owns its tables.
class BlockSlots {
 public:
  explicit BlockSlots(size_t slots) : number_(slots, kNoSlot) {}

  // Removes the slots of the previous block.
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
  // The slot's number. Precondition: it was added.
  uint32_t operator[](uint32_t slot) const { return number_[slot]; }
  const std::vector<uint32_t>& all() const { return slots_; }  // by number

 private:
  std::vector<uint32_t> number_, slots_;
};

// OperandIndex: finds values in a list of operands. Short lists, as most are, are searched; a long
// one gets an index at the first request. Ownership: refers to the list, which must not change.
class OperandIndex {
 public:
  explicit OperandIndex(std::span<const uint32_t> list) : list_(list) {}

  // The first position of the value; the length of the list if it is absent.
  uint32_t Find(uint32_t value) {
    if (list_.size() <= kFew)
      return static_cast<uint32_t>(std::find(list_.begin(), list_.end(), value) - list_.begin());
    const auto at = Index().find(value);
    return at == places_.end() ? static_cast<uint32_t>(list_.size()) : at->second.first;
  }
  // How often the value occurs.
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
