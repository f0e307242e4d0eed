// For each variable, where it is used: ascending positions, all lists in one piece of memory.
// Passes make many of these, each for one look at a program.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "core/ir.h"

namespace heddle::passes {

class PositionLists {
 public:
  explicit PositionLists(size_t variables) : lists_(variables) {}

  // Positions come ascending; one that comes again is held once.
  void Add(ir::VarId v, int at) {
    List& list = lists_[v];
    if (list.size > 0 && list.last == at) return;
    if (list.size == 0) touched_.push_back(v);
    ++list.size;
    list.last = at;
    added_.emplace_back(v, at);
  }
  // Nothing is read before, nor added after.
  void Close() {
    positions_.resize(added_.size());
    int end = 0;
    for (ir::VarId v : touched_) {
      lists_[v].begin = end;
      end += std::exchange(lists_[v].size, 0);
    }
    for (const auto& [v, at] : added_)
      positions_[static_cast<size_t>(lists_[v].begin + lists_[v].size++)] = at;
    added_.clear();
  }
  // Empties all, for others to be added; takes time for what was there, not for all variables.
  void Clear() {
    for (ir::VarId v : touched_) lists_[v] = List();
    touched_.clear();
    added_.clear();
  }
  // Valid until Clear().
  std::span<const int> operator[](ir::VarId v) const {
    return {positions_.data() + lists_[v].begin, static_cast<size_t>(lists_[v].size)};
  }

 private:
  struct List {
    int begin = 0, size = 0, last = 0;
  };
  std::vector<List> lists_;
  std::vector<ir::VarId> touched_;  // with a position
  std::vector<std::pair<ir::VarId, int>> added_;
  std::vector<int> positions_;
};

}  // namespace heddle::passes
