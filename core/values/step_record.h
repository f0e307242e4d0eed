// StepRecord: the values that a loop keeps for its gradient, one list per step, in the variable
// StepScopes (`step_scopes` of recurrent).
//
// Ownership: the lists own the values. Clear drops the values and keeps the lists' capacity, so
// that the next run of the loop allocates nothing. Threads: as for Value.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "heddle/value.h"

namespace heddle {

using StepValues = std::vector<Value>;

class StepRecord {
 public:
  size_t size() const { return size_; }
  // Appends an empty list for the next step. References to lists of earlier steps become invalid.
  StepValues& Add() {
    if (size_ == steps_.size()) steps_.emplace_back();
    return steps_[size_++];
  }
  StepValues& operator[](size_t step) { return steps_[step]; }
  StepValues& back() { return steps_[size_ - 1]; }
  void DropLast() { steps_[--size_].clear(); }
  void Clear() {
    while (size_ > 0) DropLast();
    for (StepValues& list : work_) list.clear();
  }
  // Scratch lists for the gradient operator, which visits the steps. Clear empties them.
  static constexpr size_t kWorkLists = 2;
  StepValues& work(size_t list) { return work_[list]; }

 private:
  std::vector<StepValues> steps_;  // lists from size_ on are empty
  size_t size_ = 0;
  std::array<StepValues, kWorkLists> work_;
};

}  // namespace heddle
