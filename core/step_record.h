// What a loop keeps of its steps for its gradient, in the variable StepScopes: a list of values a
// step.
//
// Ownership: the lists hold the values. What the lists themselves take stays when values are
// dropped, so that the next run of the loop takes nothing. Threads: as for Value.
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
  // The list of one more step, empty. References to lists of earlier steps end.
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
  // Lists for whoever goes through the steps, empty after Clear.
  static constexpr size_t kWorkLists = 2;
  StepValues& work(size_t list) { return work_[list]; }

 private:
  std::vector<StepValues> steps_;  // those from size_ on are empty
  size_t size_ = 0;
  std::array<StepValues, kWorkLists> work_;
};

}  // namespace heddle
