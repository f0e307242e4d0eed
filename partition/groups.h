// Groups of operators: their inputs, outputs and costs.
//
// Ownership: values; Measure refers to its matches. Threads: a Measure serves one at a time.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "partition/match.h"

namespace heddle::partition {

inline constexpr int kNoGroup = -1;

struct Group {
  std::vector<OpIndex> ops;      // in the order in which the units take them
  std::vector<UnitId> units;     // the unit of each
  std::vector<OpIndex> helpers;  // ascending
};

// The operators in their order, each after the helpers that it needs. `take(i)`: whether `i` is a
// helper of the group that has not been taken yet, and marks it as taken.
template <typename Take>
std::vector<OpIndex> SequenceOf(const Graph& graph, std::span<const OpIndex> ops,
                                std::span<const OpIndex> helpers, Take&& take) {
  std::vector<OpIndex> sequence;
  std::vector<std::pair<OpIndex, size_t>> stack;
  const auto put = [&](OpIndex root) {
    stack.emplace_back(root, 0);
    while (!stack.empty()) {
      auto& [i, next] = stack.back();
      const auto before = graph.before(i);
      while (next < before.size() && !take(before[next])) ++next;
      if (next == before.size()) {
        sequence.push_back(i);
        stack.pop_back();
      } else {
        stack.emplace_back(before[next++], 0);
      }
    }
  };
  for (const OpIndex i : ops) put(i);
  for (const OpIndex i : helpers)
    if (take(i)) put(i);
  return sequence;
}

struct Boundary {
  std::vector<ValueId> inputs;   // read inside and made outside, except parameters
  std::vector<ValueId> outputs;  // made inside and needed outside
};

class Measure {
 public:
  explicit Measure(const Matches& matches)
      : m_(matches),
        g_(matches.graph()),
        marks_(static_cast<size_t>(g_.size())),
        counted_(g_.num_values()) {}

  // The operators in their order, each after the helpers that it needs.
  std::vector<OpIndex> Sequence(const Group& group);
  Boundary BoundaryOf(const Group& group);
  double CostOf(const Group& group, const Boundary& boundary) const;
  double CostOf(const Group& group) { return CostOf(group, BoundaryOf(group)); }
  // The cost of its operators and helpers if they stay on the host.
  double HostCostOf(const Group& group) const;

 private:
  bool IsMember(OpIndex i) const { return i != kNoOp && marks_[static_cast<size_t>(i)] == mark_; }
  void Mark(const Group& group);

  const Matches& m_;
  const Graph& g_;
  std::vector<uint32_t> marks_, counted_;
  uint32_t mark_ = 0;
};

}  // namespace heddle::partition
