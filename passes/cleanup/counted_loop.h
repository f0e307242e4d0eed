// Loops that go on while counters are below their bounds.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "passes/pass.h"
#include "passes/version_view.h"

namespace heddle::passes {

// Numbers and bools that the operators of one block compute from constants.
class KnownScalars {
 public:
  // `view` shows the block; both are only read, and outlive it.
  KnownScalars(const ir::Program& program, PassContext& context, const VersionView& view)
      : p_(program), context_(context), view_(view) {}

  // The one integer or bool (0, 1) that `v` holds when the operator at `at` begins; nullopt: not
  // known. With `use` it goes into the program: see PassContext::Parameter.
  std::optional<int64_t> At(ir::VarId v, int at, bool use = false) const;

 private:
  // `left`: the number of operators that may still be looked at.
  std::optional<int64_t> Find(ir::VarId v, int at, bool use, int* left) const;
  std::optional<int64_t> Computed(const ir::Op& op, int at, bool use, int* left) const;

  const ir::Program& p_;
  PassContext& context_;
  const VersionView& view_;
};

// The body of a loop that alone runs it and at which no control edge ends; -1: the operator is
// none. `runs` comes from CountRunners. To be asked in programs without gradient blocks
// (deep_reads.h).
int LoopBody(const ir::Op& op, const std::vector<int>& runs);
// Per block, the number of operators that run it.
std::vector<int> CountRunners(const ir::Program& program);

// Shows the block in which a loop stands, and the loop's body. A pass that goes through the loops
// of each block from the last one to the first may add operators where the loop stands that it is
// at: all that the view of the outer block tells of positions before stays true.
class LoopViews {
 public:
  LoopViews(const ir::Program& program, const std::set<ir::VarId>& fetched)
      : outside_(program, fetched), inside_(program, fetched) {}
  // Shows the body as it is, and the outer block as it was when it was first asked for.
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
  // There is another turn while counter + offset < bound, for each of these, where the counter is
  // as at the beginning of the turn.
  struct Limit {
    ir::VarId counter = ir::kNoVar, bound = ir::kNoVar;
    int64_t offset = 0;
    int64_t step = 0;        // what a turn adds to the counter: 1 or more
    bool inclusive = false;  // counter + offset <= bound
  };
  std::vector<Limit> limits;
};

// How the loop at `at` of the block that `outside` shows, with this body, comes to its end;
// nullopt: in another way. `inside` shows the body.
std::optional<CountedLoop> FindCounters(const ir::Program& program, PassContext& context,
                                        const ir::Op& loop, const VersionView& inside);
// `v`, as the operator of the body at `at` sees it, is a counter and a number more.
struct Counted {
  ir::VarId counter = ir::kNoVar;
  int64_t offset = 0;
};
std::optional<Counted> CountedAt(const ir::Program& program, PassContext& context,
                                 const VersionView& inside, ir::VarId v, int at);
// The number of turns, where bounds and first values are known. With `use` as above.
std::optional<int64_t> KnownTurns(const KnownScalars& outside, const ir::Op& loop, int at,
                                  const CountedLoop& counted, bool use = false);

}  // namespace heddle::passes
