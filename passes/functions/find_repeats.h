// Stretches of a list that stand in it several times, one behind another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace heddle::passes {

// `length` elements from `begin` on, in which each element equals the one `period` before it.
struct Repeat {
  size_t begin = 0, period = 0, length = 0;
  size_t count() const { return length / period; }
};

struct RepeatLimits {
  size_t least_count = 3;   // of whole periods
  size_t least_period = 1;  // in elements
  size_t least_saved = 1;   // elements besides the first period
};

// Repeats that do not overlap, those that save the most first chosen, in ascending order. Elements
// are given by signs, which are equal for equal elements; 0: the element equals no other one. The
// time is proportional to the length of the list; not all repeats are found.
std::vector<Repeat> FindRepeats(const std::vector<uint64_t>& signs, const RepeatLimits& limits);

}  // namespace heddle::passes
