#include "partition/schedule.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace heddle::partition {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

bool Contains(const std::vector<UnitId>& units, UnitId unit) {
  return std::find(units.begin(), units.end(), unit) != units.end();
}

}  // namespace

Schedule::Schedule(const Target& target, std::vector<SchedulePart> parts)
    : parts_(std::move(parts)) {
  constexpr size_t kMostUnits = 255;
  for (const SchedulePart& part : parts_)
    for (const Choice& choice : part.choices)
      if (!Contains(units_, choice.unit) && units_.size() < kMostUnits)
        units_.push_back(choice.unit);
  std::sort(units_.begin(), units_.end());
  for (const SchedulePart& part : parts_) {
    auto& choices = choices_.emplace_back();
    for (const Choice& choice : part.choices)
      if (const auto at = std::find(units_.begin(), units_.end(), choice.unit); at != units_.end())
        choices.push_back({static_cast<UnitId>(at - units_.begin()), choice.cost});
  }
  for (const UnitId unit : units_) first_.push_back(Contains(target.first, unit));
  for (const UnitId from : units_)
    for (const UnitId to : units_)
      next_.push_back(Contains(target.next[static_cast<size_t>(from)], to));
}

double Schedule::Cheapest(uint32_t set, int64_t* budget) {
  // Subsets are numbered by the operators of the set alone.
  std::vector<uint8_t> members;
  for (uint32_t rest = set; rest != 0; rest &= rest - 1)
    members.push_back(static_cast<uint8_t>(std::countr_zero(rest)));
  const size_t n = members.size(), width = units_.size(), full = (size_t{1} << n) - 1;
  std::vector<size_t> earlier(n);
  for (size_t k = 0; k < n; ++k)
    for (size_t p = 0; p < n; ++p)
      if (parts_[members[k]].earlier >> members[p] & 1) earlier[k] |= size_t{1} << p;
  steps_.assign((full + 1) * width, Step{kNever, 0, 0});
  reached_.assign(full + 1, false);
  const auto relax = [&](size_t subset, size_t k, const Choice& choice, double cost, size_t last) {
    Step& step = steps_[(subset | size_t{1} << k) * width + static_cast<size_t>(choice.unit)];
    if (cost + choice.cost >= step.cost) return;
    step = {cost + choice.cost, static_cast<uint8_t>(k), static_cast<uint8_t>(last)};
    reached_[subset | size_t{1} << k] = true;
  };
  for (size_t k = 0; k < n; ++k)
    if (earlier[k] == 0)
      for (const Choice& choice : choices_[members[k]])
        if (first_[static_cast<size_t>(choice.unit)]) relax(0, k, choice, 0, 0);
  int64_t spent = static_cast<int64_t>(full * width) / 16;
  // Per unit: the lowest cost to reach it from a subset, and the unit before it.
  std::vector<std::pair<double, size_t>> ways(width);
  for (size_t subset = 1; subset < full; ++subset) {
    if (!reached_[subset]) continue;
    for (size_t unit = 0; unit < width; ++unit) {
      ways[unit] = {kNever, 0};
      for (size_t last = 0; last < width; ++last)
        if (const double cost = steps_[subset * width + last].cost;
            cost < ways[unit].first && next_[last * width + unit])
          ways[unit] = {cost, last};
    }
    spent += static_cast<int64_t>(width * width);
    for (size_t k = 0; k < n; ++k) {
      if (subset >> k & 1 || (earlier[k] & ~subset)) continue;
      for (const Choice& choice : choices_[members[k]])
        if (const auto& [cost, last] = ways[static_cast<size_t>(choice.unit)]; cost < kNever)
          relax(subset, k, choice, cost, last);
      spent += static_cast<int64_t>(choices_[members[k]].size());
    }
    if (spent / 4 > *budget) break;
  }
  *budget -= spent / 4;
  double best = kNever;
  for (size_t last = 0; last < width; ++last)
    best = std::min(best, steps_[full * width + last].cost);
  return best;
}

std::vector<std::pair<size_t, UnitId>> Schedule::Sequence(uint32_t set) {
  int64_t unlimited = std::numeric_limits<int64_t>::max();
  Cheapest(set, &unlimited);
  std::vector<size_t> members;
  for (uint32_t rest = set; rest != 0; rest &= rest - 1)
    members.push_back(static_cast<size_t>(std::countr_zero(rest)));
  const size_t n = members.size(), width = units_.size();
  std::vector<std::pair<size_t, UnitId>> sequence;
  size_t subset = (size_t{1} << n) - 1, unit = 0;
  for (size_t u = 0; u < width; ++u)
    if (steps_[subset * width + u].cost < steps_[subset * width + unit].cost) unit = u;
  while (subset != 0) {
    const Step step = steps_[subset * width + unit];
    sequence.emplace_back(members[step.part], units_[unit]);
    subset &= ~(size_t{1} << step.part);
    unit = step.unit;
  }
  std::reverse(sequence.begin(), sequence.end());
  return sequence;
}

double CheapestUnits(const Matches& matches, std::span<const OpIndex> ops,
                     std::vector<UnitId>* units) {
  const Target& target = matches.target();
  std::vector<double> costs;
  // The index of the choice for the operator before.
  std::vector<std::vector<size_t>> from(ops.size());
  for (size_t k = 0; k < ops.size(); ++k) {
    const auto choices = matches.choices(ops[k]);
    std::vector<double> now(choices.size(), kNever);
    from[k].resize(choices.size());
    for (size_t c = 0; c < choices.size(); ++c) {
      if (k == 0) {
        if (Contains(target.first, choices[c].unit)) now[c] = choices[c].cost;
        continue;
      }
      const auto before = matches.choices(ops[k - 1]);
      for (size_t b = 0; b < before.size(); ++b) {
        if (costs[b] + choices[c].cost >= now[c] ||
            !Contains(target.next[static_cast<size_t>(before[b].unit)], choices[c].unit))
          continue;
        now[c] = costs[b] + choices[c].cost;
        from[k][c] = b;
      }
    }
    costs = std::move(now);
  }
  const auto best = std::min_element(costs.begin(), costs.end());
  if (best == costs.end() || *best == kNever) return kNever;
  units->resize(ops.size());
  auto at = static_cast<size_t>(best - costs.begin());
  for (size_t k = ops.size(); k-- > 0;) {
    (*units)[k] = matches.choices(ops[k])[at].unit;
    at = from[k][at];
  }
  return *best;
}

}  // namespace heddle::partition
