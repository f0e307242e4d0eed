// Places (ir::Op::device) and priorities (StreamHints::scheduling_priority) that operators name. No
// pass merges operators that differ in one of them, and an operator that a pass makes has those of
// the operators that it replaces. An operator with control edges is replaced by one operator, which
// takes over the edges, or is joined with others if the order of the block permits.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/programs/ir.h"

namespace heddle::passes {

inline int64_t PriorityOf(const ir::Op& op) { return op.hints ? op.hints->scheduling_priority : 0; }

// Whether both operators name the same place (or none) and the same priority.
inline bool SamePlace(const ir::Op& a, const ir::Op& b) {
  return a.device == b.device && PriorityOf(a) == PriorityOf(b);
}
// Whether those at `others` name the same as the one at `first`.
inline bool SamePlace(const std::vector<ir::Op>& ops, int first, const std::vector<int>& others) {
  return std::all_of(others.begin(), others.end(), [&](int at) {
    return SamePlace(ops[static_cast<size_t>(at)], ops[static_cast<size_t>(first)]);
  });
}
// Whether all operators name the same.
inline bool OnePlace(const std::vector<ir::Op>& ops) {
  return std::all_of(ops.begin(), ops.end(),
                     [&](const ir::Op& op) { return SamePlace(op, ops[0]); });
}

// Gives `made` the place, the priority and the control edges of an operator that it replaces;
// called once for each.
inline void TakePlace(const ir::Op& replaced, ir::Op* made) {
  made->device = replaced.device;
  if (PriorityOf(replaced) == PriorityOf(*made) && !replaced.has_control_edges()) return;
  ir::StreamHints hints = made->hints ? *made->hints : ir::StreamHints();
  hints.scheduling_priority = PriorityOf(replaced);
  if (replaced.hints) {
    const auto add = [](const std::vector<int64_t>& from, std::vector<int64_t>* to) {
      for (const int64_t mark : from)
        if (std::find(to->begin(), to->end(), mark) == to->end()) to->push_back(mark);
    };
    add(replaced.hints->marks, &hints.marks);
    add(replaced.hints->after, &hints.after);
    std::erase_if(hints.after, [&](int64_t mark) {  // edges between operators that became one
      return std::find(hints.marks.begin(), hints.marks.end(), mark) != hints.marks.end();
    });
  }
  made->hints = std::make_shared<const ir::StreamHints>(std::move(hints));
}

}  // namespace heddle::passes
