// The operators of block 0, as far as equal stretches of them are looked for.
//
// Ownership: refers to the program, whose block 0 must not change meanwhile. Variables may be
// added. Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "core/programs/ir.h"
#include "passes/functions/find_repeats.h"

namespace heddle::passes {

// Calls fn(variable) for each operand, also for kNoVar.
template <typename Fn>
void ForOperands(const std::vector<std::vector<ir::VarId>>& slots, Fn&& fn) {
  for (const auto& slot : slots)
    for (ir::VarId v : slot) fn(v);
}

class Stretches {
 public:
  static constexpr size_t kNone = ~size_t{0};

  // What block 0 does with a variable.
  struct Use {
    size_t writer = kNone;   // position of the last writer
    size_t last_reader = 0;  // position + 1
    int writers = 0;         // in all blocks
    bool held = false;       // named outside block 0, fed, fetched, or kept
  };
  // An operand of an operator of a stretch: the output that wrote it, if the stretch has one.
  struct Source {
    size_t op = kNone, slot = 0, at = 0;  // `op`: from the beginning of the stretch on
    friend bool operator==(const Source&, const Source&) = default;
  };
  // Stretches that stand one behind another and compute the same.
  struct Row {
    size_t begin = 0, period = 0, count = 0;
    size_t end() const { return begin + period * count; }
  };

  Stretches(const ir::Program& program, const std::set<ir::VarId>& kept);

  const Use& use(ir::VarId v) const { return uses_[v]; }
  // The rows that save the most operators, ascending.
  std::vector<Row> Find(const RepeatLimits& limits) const;
  // Precondition: `end` > `begin`.
  Source SourceOf(ir::VarId v, size_t begin, size_t end) const;

 private:
  bool IsPlain(ir::VarId v) const;
  bool MayMove(const ir::Op& op) const;
  uint64_t SignOf(const ir::Op& op) const;
  bool SameFlow(size_t a, size_t b, size_t period) const;
  std::vector<size_t> Crossing(size_t begin, size_t end) const;
  Row RowIn(const Repeat& repeat) const;

  const ir::Program& p_;
  std::vector<Use> uses_;  // per variable
};

}  // namespace heddle::passes
