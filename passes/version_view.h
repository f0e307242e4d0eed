// Versions of variables: the readers of the value that one operator wrote. A variable may be
// written many times. A pass that moves a read to another variable must show that both have the
// same value there.
#pragma once

#include <limits>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "core/programs/ir.h"
#include "passes/nested_blocks.h"
#include "passes/position_lists.h"

namespace heddle::passes {

class PassContext;

// Shows one block at a time. Positions are indices into the block's operators; an operator counts
// as doing what its sub-blocks do, and reads before it writes. The view stays valid while operands
// are replaced by variables that Same() allows, and becomes invalid when operators are added,
// erased or write to other variables: Enter() then shows the block as it is. Variables that were
// added since the view was made count as used by several blocks and written by no operator.
class VersionView {
 public:
  // Shares the context's uses: for a pass that has changed nothing yet, changes operators of the
  // block shown alone, and enters blocks in the order of their numbers. Otherwise, have it walk
  // through the blocks inside.
  VersionView(const ir::Program& program, const PassContext& context);
  // Looks at the whole program as it is, and walks through the blocks inside.
  VersionView(const ir::Program& program, const std::set<ir::VarId>& fetched);
  VersionView(const VersionView&) = delete;
  VersionView& operator=(const VersionView&) = delete;
  void WalkNested() { walks_ = true; }
  void Enter(int block);
  int block() const { return block_; }

  // Positions of the operators that write or read `v`, ascending.
  std::span<const int> writes(ir::VarId v) const { return writes_[v]; }
  std::span<const int> reads(ir::VarId v) const { return reads_[v]; }
  // The number of times `v` has been written when the operator at `at` reads it.
  int VersionAt(ir::VarId v, int at) const;
  // The position of the operator whose value the one at `at` reads; -1 when it comes from outside.
  int WriterBefore(ir::VarId v, int at) const;
  // The operators at `from` and `to` see the same value of `v`.
  bool Same(ir::VarId v, int from, int to) const {
    return from >= to || VersionAt(v, from) == VersionAt(v, to);
  }
  // `v` is a plain tensor that only this block's operators use (none that runs blocks writes it),
  // is not fetched, and is written before it is read.
  bool Private(ir::VarId v) const;
  // The readers of what the operator at `at` writes to `v`, when all of them are plain operators of
  // this block that do not write `v` themselves: their operand may be replaced.
  std::optional<std::vector<int>> Readers(ir::VarId v, int at) const;
  // Readers() would give one reader; what a value with many of them may be asked for each.
  bool HasOneReader(ir::VarId v, int at) const;
  // Calls fn(variable, written) for what the blocks name that an operator of the block runs.
  template <typename Fn>
  void ForEachNested(const ir::Op& op, Fn&& fn) const {
    ForEachNestedName(program_, walks_ ? kNothingListed : uses_, op, fn);
  }
  // No operator of the program writes `v`.
  bool NeverWritten(ir::VarId v) const { return v >= uses_.written.size() || !uses_.written[v]; }

 private:
  void Read(ir::VarId v, int at) { reads_.Add(v, at); }
  void Write(ir::VarId v, int at);

  const ir::Program& program_;
  const std::set<ir::VarId>& fetched_;
  static const BlockUses kNothingListed;
  const BlockUses own_;
  const BlockUses& uses_;  // own_, or the context's
  bool walks_;
  int block_ = 0;
  PositionLists writes_, reads_;
  std::vector<bool> nested_;  // per operator of the block: it runs sub-blocks
  // Per variable: the last view of a block, by their count, in which such an operator writes it.
  std::vector<uint32_t> kept_in_;
  uint32_t entered_ = 0;
};

// Readers of `from` at `positions` of the block read `to` instead.
void ReplaceReads(ir::Block* block, const std::vector<int>& positions, ir::VarId from,
                  ir::VarId to);
// Erases the marked operators.
void EraseOps(ir::Block* block, const std::vector<bool>& gone);
// Depends on its inputs and attributes alone, and does nothing besides writing its outputs; nobody
// waits for it otherwise.
bool IsPure(const ir::Op& op);
// The program may use sequence offsets: a variable declares them, or an operator makes them.
bool UsesLoD(const ir::Program& program);
// The same for a pass that asks for each block: the program is looked at once.
bool UsesLoD(const ir::Program& program, PassContext& context);
// The variable of the slot; kNoVar unless the slot exists and names exactly one.
ir::VarId OnlyIn(const ir::Op& op, std::string_view slot);
ir::VarId OnlyOut(const ir::Op& op, std::string_view slot);
// Only `slot` has input variables, and no attribute is given by a variable.
bool HasOnlyInput(const ir::Op& op, std::string_view slot);

}  // namespace heddle::passes
