// For each variable, the ascending positions of its uses. All lists share one allocation, since
// passes build many of them for short use.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "core/programs/ir.h"

namespace heddle::passes {

class PositionLists {
 public:
  explicit PositionLists(size_t variables) : lists_(variables) {}

  // Positions must be added in ascending order; repeated ones are stored once.
  void Add(ir::VarId v, int at) {
    List& list = lists_[v];
    if (list.size > 0 && list.last == at) return;
    if (list.size == 0) touched_.push_back(v);
    ++list.size;
    list.last = at;
    added_.emplace_back(v, at);
  }
  // To be called after the last Add and before the first read.
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
  // Empties all lists, and makes one for each of `variables` variables, at least as many as before.
  // Takes time proportional to the lists' contents and the new variables, not to the number of all.
  void Clear(size_t variables) {
    for (ir::VarId v : touched_) lists_[v] = List();
    touched_.clear();
    added_.clear();
    lists_.resize(variables);
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
  std::vector<ir::VarId> touched_;  // variables with a position
  std::vector<std::pair<ir::VarId, int>> added_;
  std::vector<int> positions_;
};

}  // namespace heddle::passes
