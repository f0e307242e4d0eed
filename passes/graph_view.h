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

// Shows the block PassContext::block. Valid until the program changes. Positions are indices into
// the block's operators; an operator that runs blocks counts as reader and writer of all that these
// touch. An inner block may run repeatedly: variables that other blocks name, and those that it
// reads before it writes them, have a value when it begins.
class GraphView {
 public:
  GraphView(const ir::Program& program, const PassContext& context);

  int block() const { return block_; }

  std::span<const int> writers(ir::VarId v) const { return ListOf(writers_, v); }
  std::span<const int> readers(ir::VarId v) const { return ListOf(readers_, v); }
  // The operator that runs the block; nullptr: unknown.
  const ir::Op* runner() const { return RunnerOf(program_, uses_, block_); }
  // Whether no operator of the program writes `v`.
  bool NeverWritten(ir::VarId v) const { return v >= uses_.written.size() || !uses_.written[v]; }
  // Whether `v` is a plain tensor of this block alone, without an initial value, that one operator
  // writes. The writer has no control edges unless `joins_edges`: for callers that use an
  // OrderGraph, and give the joined operator the edges of all.
  bool SingleWriter(ir::VarId v, bool joins_edges = false) const;
  // The only reader of a SingleWriter variable that is not fetched; -1: there is no such reader, or
  // it has control edges.
  int OnlyReader(ir::VarId v, const PassContext& context) const;
  // Whether `v` has only one value: it is written once, or it is fed or a parameter and never
  // written.
  bool Stable(ir::VarId v) const {
    const uint32_t n = numbers_.Find(v);
    return n == VarNumbers::kNone || (writers_[n].size() + initial_[n] <= 1 && !shared_[n]);
  }
  // Whether `v` is stable and written before the operator at `at`, if at all: later operators read
  // the same value.
  bool WrittenBefore(ir::VarId v, int at) const {
    return Stable(v) && (writers(v).empty() || writers(v)[0] < at);
  }
  // Whether no operator from `from` to `to` writes `v`: all of them read the same value.
  bool Unchanged(ir::VarId v, int from, int to) const {
    const std::span<const int> all = writers(v);
    const auto next = std::lower_bound(all.begin(), all.end(), from);
    return next == all.end() || *next > to;
  }
  // Whether the operators at `positions` would read the same values after the one at `last`, the
  // last of them. (In a loop's body, variables that it carries are written further down.)
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
  VarNumbers numbers_;  // for the lists below
  PositionLists writers_, readers_;
  std::vector<bool> shared_;   // touched in an inner block
  std::vector<bool> initial_;  // has a value before the block begins, or is read first
};

}  // namespace heddle::passes
