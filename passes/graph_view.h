// Writers and readers of the variables of block 0.
#pragma once

#include <span>
#include <vector>

#include "core/ir.h"
#include "passes/pass.h"
#include "passes/position_lists.h"

namespace heddle::passes {

// Valid until the program changes. Positions are indices into block 0's operators; an operator that
// holds sub-blocks counts as reader and writer of everything they touch.
class GraphView {
 public:
  explicit GraphView(const ir::Program& program);

  std::span<const int> writers(ir::VarId v) const { return writers_[v]; }
  std::span<const int> readers(ir::VarId v) const { return readers_[v]; }
  // `v` is a plain tensor of block 0 alone, has no initial value, and one operator writes it.
  bool SingleWriter(ir::VarId v) const;
  // The only reader of a SingleWriter variable that nobody fetches; -1 when there is no such one.
  int OnlyReader(ir::VarId v, const PassContext& context) const;
  // `v` has only one value: it is written once, or it is fed or a parameter and never written.
  bool Stable(ir::VarId v) const { return writers_[v].size() + initial_[v] <= 1 && !shared_[v]; }
  // `v` is stable, and its write, if there is one, comes before operator `at`: a later operator
  // reads the same value.
  bool WrittenBefore(ir::VarId v, int at) const {
    return Stable(v) && (writers_[v].empty() || writers_[v][0] < at);
  }

 private:
  void Touch(const ir::Op& op, int at, bool nested);
  const ir::Program& program_;
  PositionLists writers_, readers_;
  std::vector<bool> shared_;   // touched inside a sub-block
  std::vector<bool> initial_;  // has a value before the program begins, or is read first
};

}  // namespace heddle::passes
