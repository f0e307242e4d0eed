// Sequences of operators along a target's links.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "partition/match.h"

namespace heddle::partition {

struct SchedulePart {
  std::span<const Choice> choices;
  uint32_t earlier = 0;  // parts that come before it, as bits
};

// Finds the cheapest sequence of any set of a few operators. Threads: one at a time.
class Schedule {
 public:
  Schedule(const Target& target, std::vector<SchedulePart> parts);
  // What the units of the cheapest sequence cost; infinity: there is none. Reduces the budget by
  // the steps that it took, and gives up below 0.
  double Cheapest(uint32_t set, int64_t* budget);
  // The sequence itself. Precondition: there is one.
  std::vector<std::pair<size_t, UnitId>> Sequence(uint32_t set);

 private:
  struct Step {
    double cost = 0;
    uint8_t part = 0;  // the last one, among those of the set
    uint8_t unit = 0;  // of the one before
  };
  const std::vector<SchedulePart> parts_;
  std::vector<UnitId> units_;                 // that any part may take
  std::vector<std::vector<Choice>> choices_;  // with indices into units_
  std::vector<bool> first_, next_;            // of units_; of pairs
  std::vector<Step> steps_;                   // per subset of the set and last unit
  std::vector<bool> reached_;
};

// The cheapest units for operators in a given order, and what they cost; infinity: there are none.
double CheapestUnits(const Matches& matches, std::span<const OpIndex> ops,
                     std::vector<UnitId>* units);

}  // namespace heddle::partition
