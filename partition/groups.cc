#include "partition/groups.h"

#include <algorithm>

namespace heddle::partition {

void Measure::Mark(const Group& group) {
  ++mark_;
  for (const OpIndex i : group.ops) marks_[static_cast<size_t>(i)] = mark_;
  for (const OpIndex i : group.helpers) marks_[static_cast<size_t>(i)] = mark_;
}

std::vector<OpIndex> Measure::Sequence(const Group& group) {
  ++mark_;
  for (const OpIndex i : group.helpers) marks_[static_cast<size_t>(i)] = mark_;
  return SequenceOf(g_, group.ops, group.helpers, [this](OpIndex i) {
    if (!IsMember(i)) return false;
    marks_[static_cast<size_t>(i)] = 0;
    return true;
  });
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
