#include "partition/groups.h"

#include <algorithm>
#include <utility>

namespace heddle::partition {

void Measure::Mark(const Group& group) {
  ++mark_;
  for (const OpIndex i : group.ops) marks_[static_cast<size_t>(i)] = mark_;
  for (const OpIndex i : group.helpers) marks_[static_cast<size_t>(i)] = mark_;
}

std::vector<OpIndex> Measure::Sequence(const Group& group) {
  // An operator loses its mark when it has been put.
  Mark(group);
  const uint32_t operators = mark_++;
  for (const OpIndex i : group.helpers) marks_[static_cast<size_t>(i)] = mark_;
  std::vector<OpIndex> sequence;
  std::vector<std::pair<OpIndex, size_t>> stack;
  const auto put = [&](OpIndex root) {
    const uint32_t mark = marks_[static_cast<size_t>(root)];
    if (mark != mark_ && mark != operators) return;
    marks_[static_cast<size_t>(root)] = 0;
    stack.emplace_back(root, 0);
    while (!stack.empty()) {
      auto& [i, next] = stack.back();
      const auto before = g_.before(i);
      while (next < before.size() && !IsMember(before[next])) ++next;
      if (next == before.size()) {
        sequence.push_back(i);
        stack.pop_back();
        continue;
      }
      const OpIndex helper = before[next++];
      marks_[static_cast<size_t>(helper)] = 0;
      stack.emplace_back(helper, 0);
    }
  };
  for (const OpIndex i : group.ops) put(i);
  for (const OpIndex i : group.helpers) put(i);
  return sequence;
}

Boundary Measure::BoundaryOf(const Group& group) {
  const std::vector<OpIndex> sequence = Sequence(group);
  Mark(group);
  Boundary boundary;
  for (const OpIndex i : sequence)
    for (const Use& use : g_.reads(i)) {
      const Value& value = g_.value(use.value);
      if (value.constant || IsMember(value.maker) || counted_[use.value] == mark_) continue;
      counted_[use.value] = mark_;
      boundary.inputs.push_back(use.value);
    }
  for (const OpIndex i : sequence)
    for (const Use& use : g_.writes(i)) {
      const auto readers = g_.readers(use.value);
      if (g_.value(use.value).kept ||
          !std::all_of(readers.begin(), readers.end(), [&](OpIndex r) { return IsMember(r); }))
        boundary.outputs.push_back(use.value);
    }
  return boundary;
}

double Measure::CostOf(const Group& group, const Boundary& boundary) const {
  double cost = m_.target().group_cost, moved = 0;
  for (size_t k = 0; k < group.ops.size(); ++k) cost += *m_.cost(group.ops[k], group.units[k]);
  for (const ValueId v : boundary.inputs) moved += static_cast<double>(g_.bytes(v));
  for (const ValueId v : boundary.outputs) moved += static_cast<double>(g_.bytes(v));
  return cost + m_.target().byte_cost * moved;
}

double Measure::HostCostOf(const Group& group) const {
  double cost = 0;
  for (const OpIndex i : group.ops) cost += m_.host_cost(i);
  for (const OpIndex i : group.helpers) cost += m_.host_cost(i);
  return cost;
}

}  // namespace heddle::partition
