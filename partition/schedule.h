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
  uint32_t earlier = 0;  // bit set of the parts that precede it
};

// Finds the cheapest sequence of any set of a few operators. Threads: one at a time.
class Schedule {
 public:
  Schedule(const Target& target, std::vector<SchedulePart> parts);
  // The cost of the units of the cheapest sequence; infinity: there is none. Subtracts the steps
  // that it took from the budget, and gives up when that is negative.
  double Cheapest(uint32_t set, int64_t* budget);
  // The cheapest sequence. Precondition: Cheapest(set) is finite.
  std::vector<std::pair<size_t, UnitId>> Sequence(uint32_t set);

 private:
  struct Step {
    double cost = 0;
    uint8_t part = 0;  // the last part, an index into the set
    uint8_t unit = 0;  // the unit of the part before
  };
  const std::vector<SchedulePart> parts_;
  std::vector<UnitId> units_;                 // that some part may take
  std::vector<std::vector<Choice>> choices_;  // with indices into units_
  std::vector<bool> first_, next_;  // whether a unit may begin; whether a unit may follow another
  std::vector<Step> steps_;         // by subset of the set, and by last unit
  std::vector<bool> reached_;
};

// Chooses the cheapest units for operators in a given order; returns their cost, infinity: there
// are none.
double CheapestUnits(const Matches& matches, std::span<const OpIndex> ops,
                     std::vector<UnitId>* units);

}  // namespace heddle::partition
