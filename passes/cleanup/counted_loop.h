// Loops that go on while counters are below their bounds.
#pragma once

#include <cstdint>
#include <optional>
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
  // `left`: operators, at most, that are still to be looked at.
  std::optional<int64_t> Find(ir::VarId v, int at, bool use, int* left) const;
  std::optional<int64_t> Computed(const ir::Op& op, int at, bool use, int* left) const;

  const ir::Program& p_;
  PassContext& context_;
  const VersionView& view_;
};

// The body of a loop that it alone runs, no gradient goes back through and no control edge ends at;
// -1: the operator is none. `runs`, per block: operators that run it.
int LoopBody(const ir::Program& program, const ir::Op& op, const std::vector<int>& runs);
std::vector<int> CountRunners(const ir::Program& program);

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
