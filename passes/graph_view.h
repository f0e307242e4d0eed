// Writers and readers of the variables of one block.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "core/programs/ir.h"
#include "passes/pass.h"
#include "passes/position_lists.h"
#include "passes/var_numbers.h"

namespace heddle::passes {

// Shows the block that the context says. Valid until the program changes. Positions are indices
// into the block's operators; an operator that holds sub-blocks counts as reader and writer of
// everything they touch. A sub-block may run again and again: what other blocks name, and what it
// reads before it writes it, has a value when it begins.
class GraphView {
 public:
  GraphView(const ir::Program& program, const PassContext& context);

  int block() const { return block_; }

  std::span<const int> writers(ir::VarId v) const { return ListOf(writers_, v); }
  std::span<const int> readers(ir::VarId v) const { return ListOf(readers_, v); }
  // The operator that runs the block; nullptr: none is known.
  const ir::Op* runner() const { return RunnerOf(program_, uses_, block_); }
  // No operator of the program writes `v`.
  bool NeverWritten(ir::VarId v) const { return v >= uses_.written.size() || !uses_.written[v]; }
  // `v` is a plain tensor of the block alone, has no initial value, and one operator writes it. Not
  // one with control edges, which stays what it is, but for who goes by OrderGraph and joins the
  // edges of the operators that it joins.
  bool SingleWriter(ir::VarId v, bool joins_edges = false) const;
  // The only reader of a SingleWriter variable that nobody fetches; -1 when there is no such one,
  // or it has control edges.
  int OnlyReader(ir::VarId v, const PassContext& context) const;
  // `v` has only one value: it is written once, or it is fed or a parameter and never written.
  bool Stable(ir::VarId v) const {
    const uint32_t n = numbers_.Find(v);
    return n == VarNumbers::kNone || (writers_[n].size() + initial_[n] <= 1 && !shared_[n]);
  }
  // `v` is stable, and its write, if there is one, comes before operator `at`: a later operator
  // reads the same value.
  bool WrittenBefore(ir::VarId v, int at) const {
    return Stable(v) && (writers(v).empty() || writers(v)[0] < at);
  }
  // No operator from `from` to `to` writes `v`: all of them read the same value.
  bool Unchanged(ir::VarId v, int from, int to) const {
    const std::span<const int> all = writers(v);
    const auto next = std::lower_bound(all.begin(), all.end(), from);
    return next == all.end() || *next > to;
  }
  // The operators at `positions` read the same values behind the one at `last`, the last of
  // them. (In a loop's body, variables that are carried from iteration to iteration are written
  // further down.)
  bool ReadTheSame(std::span<const int> positions, int last) const;

 private:
  bool HasControlEdges(int at) const;
  std::span<const int> ListOf(const PositionLists& lists, ir::VarId v) const {
    const uint32_t n = numbers_.Find(v);
    return n == VarNumbers::kNone ? std::span<const int>() : lists[n];
  }
  void Number();
  void Touch(const ir::Op& op, int at);
  void Meet(ir::VarId v, bool nested);
  const ir::Program& program_;
  const int block_;
  const BlockUses& uses_;
  VarNumbers numbers_;  // of the variables below
  PositionLists writers_, readers_;
  std::vector<bool> shared_;   // touched inside a sub-block
  std::vector<bool> initial_;  // has a value before the block begins, or is read first
};

}  // namespace heddle::passes
