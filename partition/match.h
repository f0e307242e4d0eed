// Which units of a target take which operators, at what cost, and why others do not.
//
// Ownership: Matches refers to its graph and its target. Threads: any may read.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "partition/graph.h"
#include "partition/target.h"

namespace heddle::partition {

struct Choice {
  UnitId unit = 0;
  double cost = 0;
};

class Matches {
 public:
  Matches(const Graph& graph, const Target& target);

  const Graph& graph() const { return graph_; }
  const Target& target() const { return target_; }
  // In the order of the target's units; empty for an operator that never enters a group.
  std::span<const Choice> choices(OpIndex i) const { return choices_[static_cast<size_t>(i)]; }
  bool taken(OpIndex i) const { return !choices(i).empty(); }
  // Whether no unit takes the operator, but a helper pattern does.
  bool helper(OpIndex i) const { return helper_[static_cast<size_t>(i)]; }
  double host_cost(OpIndex i) const;
  // The cost of an operator in a unit; nullptr: the unit does not take it.
  const double* cost(OpIndex i, UnitId unit) const;
  // For an operator that no unit takes: which condition of which unit fails.
  std::string WhyNot(OpIndex i) const;

 private:
  const Graph& graph_;
  const Target& target_;
  Lists<Choice> choices_;
  std::vector<bool> helper_;
};

}  // namespace heddle::partition
