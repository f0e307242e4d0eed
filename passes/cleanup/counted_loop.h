// Loops that run while counters are below their bounds.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "passes/pass.h"
#include "passes/version_view.h"

namespace heddle::passes {

// Finds numbers and bools that the operators of one block compute from constants.
class KnownScalars {
 public:
  // `view` shows the block. Both are only read, and must outlive the object.
  KnownScalars(const ir::Program& program, PassContext& context, const VersionView& view)
      : p_(program), context_(context), view_(view) {}

  // The integer or bool (0, 1) that `v` holds when the operator at `at` begins; nullopt: unknown.
  // With `use` the value becomes part of the program: see PassContext::Parameter.
  std::optional<int64_t> At(ir::VarId v, int at, bool use = false) const;

 private:
  // `left`: the number of operators that may still be visited.
  std::optional<int64_t> Find(ir::VarId v, int at, bool use, int* left) const;
  std::optional<int64_t> Computed(const ir::Op& op, int at, bool use, int* left) const;

  const ir::Program& p_;
  PassContext& context_;
  const VersionView& view_;
};

// The body of a loop which only this operator runs, and at which no control edge ends; -1: the
// operator is not such a loop. `runs` comes from CountRunners. Precondition: the program has no
// gradient blocks (deep_reads.h).
int LoopBody(const ir::Op& op, const std::vector<int>& runs);
// Per block, the number of operators that run it.
std::vector<int> CountRunners(const ir::Program& program);

// Shows a loop's body, and the block that contains the loop. A pass that visits the loops of each
// block from the last to the first may add operators at the position of the loop: what the view of
// the outer block says about earlier positions stays true.
class LoopViews {
 public:
  LoopViews(const ir::Program& program, const std::set<ir::VarId>& fetched)
      : outside_(program, fetched), inside_(program, fetched) {}
  // Shows the body as it is, and the outer block as it was at the first call for it.
  void Enter(int block, int body) {
    if (std::exchange(block_, block) != block) outside_.Enter(block);
    inside_.Enter(body);
  }
  const VersionView& outside() const { return outside_; }
  const VersionView& inside() const { return inside_; }

 private:
  VersionView outside_, inside_;
  int block_ = -1;
};

struct CountedLoop {
  // Another turn follows while counter + offset < bound holds for each limit, with the counter's
  // value at the beginning of the turn.
  struct Limit {
    ir::VarId counter = ir::kNoVar, bound = ir::kNoVar;
    int64_t offset = 0;
    int64_t step = 0;        // what a turn adds to the counter: 1 or more
    bool inclusive = false;  // counter + offset <= bound
  };
  std::vector<Limit> limits;
};

// The counters that end the loop whose body `inside` shows; nullopt: it ends for another reason.
std::optional<CountedLoop> FindCounters(const ir::Program& program, PassContext& context,
                                        const ir::Op& loop, const VersionView& inside);
// A counter plus a number: the value of `v` when the operator of the body at `at` begins.
struct Counted {
  ir::VarId counter = ir::kNoVar;
  int64_t offset = 0;
};
std::optional<Counted> CountedAt(const ir::Program& program, PassContext& context,
                                 const VersionView& inside, ir::VarId v, int at);
// The number of turns; nullopt: bounds or first values are unknown. `use`: as above.
std::optional<int64_t> KnownTurns(const KnownScalars& outside, const ir::Op& loop, int at,
                                  const CountedLoop& counted, bool use = false);

}  // namespace heddle::passes
